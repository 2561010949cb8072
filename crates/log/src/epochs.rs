//! Which leader epoch began at which offset, in Kafka's `leader-epoch-checkpoint`.

/// Where a leader epoch ends, as OffsetForLeaderEpoch answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EpochEnd {
    /// The largest epoch in the log that is not larger than the one asked for, or −1.
    pub epoch: i32,
    /// The offset after its last record, or −1.
    pub end_offset: i64,
}

/// The leader epochs of a log, the oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Epochs {
    entries: Vec<(i32, i64)>,
}

impl Epochs {
    /// Notes that a batch with that epoch begins at `offset`. Returns whether that was news.
    pub(crate) fn assign(&mut self, epoch: i32, offset: i64) -> bool {
        if epoch < 0 || self.entries.last().is_some_and(|&(last, _)| last >= epoch) {
            return false;
        }
        self.entries.push((epoch, offset));
        true
    }

    /// Takes back the last assignment, whose batch was not written.
    pub(crate) fn unassign(&mut self) {
        self.entries.pop();
    }

    pub(crate) fn latest(&self) -> Option<i32> {
        self.entries.last().map(|&(epoch, _)| epoch)
    }

    /// The epoch of the batch at `offset`.
    pub(crate) fn at(&self, offset: i64) -> Option<i32> {
        let after = self.entries.partition_point(|&(_, start)| start <= offset);
        Some(self.entries[after.checked_sub(1)?].0)
    }

    /// As Kafka's LeaderEpochFileCache.
    pub(crate) fn end_of(&self, epoch: i32, log_end: i64) -> EpochEnd {
        const NONE: EpochEnd = EpochEnd {
            epoch: -1,
            end_offset: -1,
        };
        if epoch < 0 {
            return NONE;
        }
        if self.latest() == Some(epoch) {
            return EpochEnd {
                epoch,
                end_offset: log_end,
            };
        }
        let higher = self.entries.partition_point(|&(other, _)| other <= epoch);
        let Some(&(_, end_offset)) = self.entries.get(higher) else {
            return NONE;
        };
        let epoch = match higher.checked_sub(1) {
            Some(floor) => self.entries[floor].0,
            // Older than everything here: it ended before the log starts.
            None => epoch,
        };
        EpochEnd { epoch, end_offset }
    }

    /// Forgets the epochs that end before `start`, where the log now starts.
    pub(crate) fn truncate_start(&mut self, start: i64) -> bool {
        let after = self.entries.partition_point(|&(_, offset)| offset <= start);
        let Some(floor) = after.checked_sub(1) else {
            return false;
        };
        let changed = floor > 0 || self.entries[floor].1 != start;
        self.entries.drain(..floor);
        self.entries[0].1 = start;
        changed
    }

    /// Forgets the epochs that begin at `end` or later, where the log now ends.
    pub(crate) fn truncate_end(&mut self, end: i64) {
        self.entries.retain(|&(_, offset)| offset < end);
    }

    pub(crate) fn encode(&self) -> String {
        let mut text = format!("0\n{}\n", self.entries.len());
        for (epoch, offset) in &self.entries {
            text += &format!("{epoch} {offset}\n");
        }
        text
    }

    /// The epochs in the file, or `None` if it is damaged.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Epochs> {
        let mut lines = std::str::from_utf8(bytes).ok()?.lines();
        if lines.next()? != "0" {
            return None;
        }
        let count: usize = lines.next()?.parse().ok()?;
        let mut entries = Vec::new();
        for line in lines {
            let (epoch, offset) = line.split_once(' ')?;
            entries.push((epoch.parse().ok()?, offset.parse().ok()?));
        }
        let grows = entries.is_sorted_by(|a: &(i32, i64), b| a.0 < b.0 && a.1 <= b.1);
        (entries.len() == count && grows).then_some(Epochs { entries })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn epochs() -> Epochs {
        let mut epochs = Epochs::default();
        for (epoch, offset) in [(1, 10), (3, 20), (4, 35)] {
            assert!(epochs.assign(epoch, offset));
        }
        epochs
    }

    #[test]
    fn an_epoch_ends_where_the_next_one_begins() {
        let epochs = epochs();
        for (asked, epoch, end_offset) in [
            (-1, -1, -1),
            (0, 0, 10),
            (1, 1, 20),
            (2, 1, 20),
            (3, 3, 35),
            (4, 4, 50),
            (5, -1, -1),
        ] {
            assert_eq!(
                epochs.end_of(asked, 50),
                EpochEnd { epoch, end_offset },
                "{asked}"
            );
        }
        assert_eq!(epochs.at(9), None);
        assert_eq!(epochs.at(10), Some(1));
        assert_eq!(epochs.at(34), Some(3));
    }

    #[test]
    fn epochs_never_go_back_and_are_cut_at_both_ends() {
        let mut epochs = epochs();
        assert!(!epochs.assign(4, 60));
        assert!(!epochs.assign(2, 60));
        assert!(epochs.truncate_start(25));
        assert_eq!(epochs.entries, [(3, 25), (4, 35)]);
        assert!(!epochs.truncate_start(25));
        epochs.truncate_end(35);
        assert_eq!(epochs.entries, [(3, 25)]);
    }

    #[test]
    fn reads_back_what_it_writes_and_refuses_the_rest() {
        let epochs = epochs();
        assert_eq!(epochs.encode(), "0\n3\n1 10\n3 20\n4 35\n");
        assert_eq!(Epochs::decode(epochs.encode().as_bytes()), Some(epochs));
        for text in ["", "1\n0\n", "0\n1\n", "0\n1\n1 x\n", "0\n2\n2 0\n1 5\n"] {
            assert_eq!(Epochs::decode(text.as_bytes()), None, "{text:?}");
        }
    }
}
