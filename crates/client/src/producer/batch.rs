//! A batch on its way from the application to the broker.

use std::sync::Arc;

use bytes::Bytes;
use kohort_wire::records::{BatchBuilder, BatchHeader, BatchMut, HEADER_LENGTH};
use tokio::time::Instant;

use super::delivery::Outcome;

/// Who writes: the producer's id and epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) id: i64,
    pub(super) epoch: i16,
}

/// A batch that takes no more records.
#[derive(Debug)]
pub(super) struct Batch {
    /// In the order of their making.
    pub(super) number: u64,
    pub(super) outcome: Arc<Outcome>,
    pub(super) count: i32,
    /// How much of the buffer's memory it takes.
    pub(super) memory: usize,
    pub(super) created: Instant,
    content: Content,
    /// Under whose name, and with which first sequence number, it was last sent.
    pub(super) sent_as: Option<(Identity, i32)>,
}

#[derive(Debug)]
enum Content {
    /// Records, to be compressed when it is sent.
    Records(Box<BatchBuilder>),
    /// As it is sent.
    Bytes(Bytes),
}

impl Batch {
    pub(super) fn new(
        number: u64,
        outcome: Arc<Outcome>,
        builder: Box<BatchBuilder>,
        memory: usize,
        created: Instant,
    ) -> Batch {
        Batch {
            number,
            outcome,
            count: builder.count() as i32,
            memory,
            created,
            content: Content::Records(builder),
            sent_as: None,
        }
    }

    /// About how many bytes it has on the wire, at most.
    pub(super) fn size(&self) -> usize {
        match &self.content {
            Content::Records(builder) => builder.size(),
            Content::Bytes(bytes) => bytes.len(),
        }
    }

    /// The batch as it is to be sent, with the producer's identity and the sequence number of its
    /// first record. A builder that is not needed any more is given back.
    pub(super) fn bytes(
        &mut self,
        identity: Option<(Identity, i32)>,
    ) -> (Bytes, Option<Box<BatchBuilder>>) {
        let changed = self.sent_as != identity;
        self.sent_as = identity;
        match &mut self.content {
            Content::Records(builder) => {
                if let Some((identity, sequence)) = identity {
                    builder.set_producer(identity.id, identity.epoch, sequence);
                }
                let bytes = builder.finish();
                let content = Content::Bytes(bytes.clone());
                match std::mem::replace(&mut self.content, content) {
                    Content::Records(builder) => (bytes, Some(builder)),
                    Content::Bytes(_) => (bytes, None),
                }
            }
            Content::Bytes(bytes) => {
                if changed && let Some((identity, sequence)) = identity {
                    *bytes = renamed(bytes, identity, sequence);
                }
                (bytes.clone(), None)
            }
        }
    }
}

/// The same batch under another name.
fn renamed(bytes: &Bytes, identity: Identity, sequence: i32) -> Bytes {
    let Ok(mut header) = BatchHeader::parse(bytes) else {
        return bytes.clone();
    };
    header.producer_id = identity.id;
    header.producer_epoch = identity.epoch;
    header.base_sequence = sequence;
    let mut bytes = bytes.to_vec();
    bytes[..HEADER_LENGTH].copy_from_slice(&header.to_bytes());
    BatchMut::new(&mut bytes).set_crc();
    bytes.into()
}
