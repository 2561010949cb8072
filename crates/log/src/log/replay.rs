//! Learning from its batches what a log knew of producers and leader epochs.

use std::collections::VecDeque;

use kohort_wire::records::BatchHeader;

use crate::{LogError, epochs::Epochs, producers::Producers, segment::Segment};

/// Collects what the batches say of producers and epochs.
pub(super) struct Replay<'a> {
    /// States of the producers ahead, the oldest first: as soon as the log is known to reach one,
    /// it counts.
    snapshots: VecDeque<(i64, Producers)>,
    pub(super) snapshot_offset: Option<i64>,
    pub(super) producers: Producers,
    epochs: &'a mut Epochs,
}

impl<'a> Replay<'a> {
    pub(super) fn new(snapshots: Vec<(i64, Producers)>, epochs: &'a mut Epochs) -> Replay<'a> {
        Replay {
            snapshots: snapshots.into(),
            snapshot_offset: None,
            producers: Producers::default(),
            epochs,
        }
    }

    /// The log has all its batches up to that offset.
    pub(super) fn reach(&mut self, offset: i64) {
        while let Some((taken, producers)) = self.snapshots.pop_front_if(|next| next.0 <= offset) {
            self.snapshot_offset = Some(taken);
            self.producers = producers;
        }
    }

    pub(super) fn batch(&mut self, header: &BatchHeader) {
        self.reach(header.base_offset);
        self.producers.replay(header);
        self.epochs
            .assign(header.partition_leader_epoch, header.base_offset);
    }

    /// A segment that is not checked, whose batches all are below `next`.
    pub(super) fn trusted(
        &mut self,
        segment: &Segment,
        next: i64,
        known_epochs: bool,
    ) -> Result<(), LogError> {
        let from = if known_epochs {
            // All there is to know of it may be in a snapshot; at least of a part of it.
            self.reach(next);
            match self.snapshot_offset {
                Some(offset) if offset >= next => return Ok(()),
                Some(offset) => segment.position(offset)?,
                None => 0,
            }
        } else {
            0
        };
        let mut scanner = segment.scan(from);
        while let Some(batch) = scanner.next().map_err(|e| segment.scan_error(e))? {
            if self
                .snapshot_offset
                .is_none_or(|offset| offset <= batch.header.base_offset)
            {
                self.batch(&batch.header);
            } else {
                let header = &batch.header;
                self.epochs
                    .assign(header.partition_leader_epoch, header.base_offset);
            }
        }
        Ok(())
    }
}
