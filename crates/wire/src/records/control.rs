//! The records of control batches, which no application sees.

use super::{Record, RecordsError};

/// The end of a transaction, as the coordinator writes it to each partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndTransactionMarker {
    /// Whether the transaction was committed; aborted otherwise.
    pub committed: bool,
    /// The epoch of the transaction coordinator that wrote it.
    pub coordinator_epoch: i32,
}

/// What a control record says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ControlRecord {
    /// A transaction ended.
    EndTransaction(EndTransactionMarker),
    /// A type that is not known here, to be skipped: KRaft has some of its own.
    Unknown(i16),
}

impl ControlRecord {
    /// Reads a record of a control batch. Newer versions may add fields; they are ignored.
    pub fn parse(record: &Record<'_>) -> Result<ControlRecord, RecordsError> {
        const KEY: RecordsError = RecordsError::Invalid("a control record has a damaged key");
        const VALUE: RecordsError = RecordsError::Invalid("a control record has a damaged value");
        let key = record.key.and_then(<[u8]>::first_chunk::<4>).ok_or(KEY)?;
        if i16::from_be_bytes([key[0], key[1]]) < 0 {
            return Err(KEY);
        }
        let committed = match i16::from_be_bytes([key[2], key[3]]) {
            0 => false,
            1 => true,
            other => return Ok(ControlRecord::Unknown(other)),
        };
        let value = record
            .value
            .and_then(<[u8]>::first_chunk::<6>)
            .ok_or(VALUE)?;
        if i16::from_be_bytes([value[0], value[1]]) < 0 {
            return Err(VALUE);
        }
        let mut epoch = [0; 4];
        epoch.copy_from_slice(&value[2..]);
        Ok(ControlRecord::EndTransaction(EndTransactionMarker {
            committed,
            coordinator_epoch: i32::from_be_bytes(epoch),
        }))
    }
}

impl EndTransactionMarker {
    /// The key of the control record.
    pub const fn key(&self) -> [u8; 4] {
        [0, 0, 0, self.committed as u8]
    }

    /// The value of the control record.
    pub const fn value(&self) -> [u8; 6] {
        let [a, b, c, d] = self.coordinator_epoch.to_be_bytes();
        [0, 0, a, b, c, d]
    }
}
