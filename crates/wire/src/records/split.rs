//! Several batches in one byte string.

use bytes::Bytes;

use super::{Batch, RecordsError};

/// Cuts `bytes` into batches. A last batch that is not whole ends them without an error: a fetch
/// response may be cut off anywhere.
pub const fn split(bytes: Bytes) -> Batches {
    Batches { bytes }
}

/// The one batch of a produce request for one partition: exactly one and whole, of format 2.
/// Kafka's ProduceRequest has the same rule since version 3.
pub fn produced(mut bytes: Bytes) -> Result<Batch, RecordsError> {
    if bytes.is_empty() {
        return Err(RecordsError::NotOneBatch);
    }
    let batch = Batch::split_from(&mut bytes)?;
    if bytes.is_empty() {
        Ok(batch)
    } else {
        Err(RecordsError::NotOneBatch)
    }
}

/// The batches of a byte string. After an error it ends.
#[derive(Debug, Clone)]
pub struct Batches {
    bytes: Bytes,
}

impl Batches {
    /// What has not been cut off yet; at the end, a batch that is not whole.
    pub const fn rest(&self) -> &Bytes {
        &self.bytes
    }
}

impl Iterator for Batches {
    type Item = Result<Batch, RecordsError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.bytes.is_empty() {
            return None;
        }
        match Batch::split_from(&mut self.bytes) {
            Err(RecordsError::Truncated { .. }) => None,
            Ok(batch) => Some(Ok(batch)),
            Err(error) => {
                self.bytes.clear();
                Some(Err(error))
            }
        }
    }
}
