//! Which batches of a fetch response belong to aborted transactions.
//!
//! The response lists the aborted transactions that overlap it, each by its producer and its first
//! offset; where one ends is told by a marker among the records (KIP-98). The response may begin
//! anywhere: before a transaction, in the middle of it, or at its marker.

use std::collections::VecDeque;

use kohort_wire::{
    messages::AbortedTransaction,
    records::{Batch, ControlRecord, RecordsError},
};
use rustc_hash::FxHashSet;

/// The aborted transactions of a response, followed batch by batch.
#[derive(Debug)]
pub(super) struct AbortedTransactions {
    /// Those that begin after the current batch, by first offset.
    ahead: VecDeque<AbortedTransaction>,
    /// Producers that are inside an aborted transaction at the current batch.
    open: FxHashSet<i64>,
    /// Whether only committed records are read.
    committed_only: bool,
}

impl AbortedTransactions {
    /// `listed` is `None` if uncommitted records are read too. Its order does not matter.
    pub(super) fn new(listed: Option<Vec<AbortedTransaction>>) -> AbortedTransactions {
        let committed_only = listed.is_some();
        let mut listed = listed.unwrap_or_default();
        listed.sort_by_key(|transaction| transaction.first_offset);
        AbortedTransactions {
            ahead: listed.into(),
            open: FxHashSet::default(),
            committed_only,
        }
    }

    /// Moves on to `batch`; every batch has to be passed, in order. Returns whether its records
    /// belong to an aborted transaction.
    pub(super) fn pass(
        &mut self,
        batch: &Batch,
        decompressed_bytes_max: usize,
    ) -> Result<bool, RecordsError> {
        if !self.committed_only {
            return Ok(false);
        }
        let header = batch.header();
        while let Some(transaction) = self.ahead.front()
            && transaction.first_offset <= header.last_offset()
        {
            self.open.insert(transaction.producer_id);
            self.ahead.pop_front();
        }
        if !header.is_transactional() || !self.open.contains(&header.producer_id) {
            return Ok(false);
        }
        if header.is_control() && ends_transaction(batch, decompressed_bytes_max)? {
            self.open.remove(&header.producer_id);
        }
        Ok(!header.is_control())
    }
}

/// Whether a transactional control batch is the marker at the end of a transaction. Compaction can
/// leave a marker's batch without its record; the transaction still ends there.
fn ends_transaction(batch: &Batch, decompressed_bytes_max: usize) -> Result<bool, RecordsError> {
    let records = batch.records(decompressed_bytes_max)?;
    let Some(record) = records.iter().next() else {
        return Ok(true);
    };
    let marker = ControlRecord::parse(&record?)?;
    Ok(matches!(marker, ControlRecord::EndTransaction(_)))
}

#[cfg(test)]
mod tests;
