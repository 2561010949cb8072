//! What is in the files of a log, and what should be.

use std::{ops::Range, sync::Arc};

use super::{
    Checked, Damage,
    salvage::{Salvage, salvage},
};
use crate::{
    LogError, Storage,
    checkpoint::{Checkpoint, RecoveryPoint},
    files::{self, CHECKPOINT, LOG, RECOVERY_POINT, SWAP},
    segment::path,
};

/// A segment, and what its file holds.
#[derive(Debug)]
pub(super) struct Surveyed {
    pub(super) base_offset: i64,
    pub(super) salvage: Salvage,
}

/// What is in the files of a log, and what should be.
#[derive(Debug)]
pub(super) struct Survey {
    /// What the log knows of itself; `None` if that is damaged.
    pub(super) checkpoint: Option<Checkpoint>,
    pub(super) segments: Vec<Surveyed>,
    pub(super) damage: Vec<Damage>,
    pub(super) start_offset: i64,
    /// Where the log ends, or has to: everything before was assigned.
    pub(super) end_offset: i64,
    /// Where the batches end that are there.
    pub(super) found_end: i64,
    pub(super) unfinished_bytes: u64,
    /// What the next start cuts off: from that position of the segment, and all segments behind.
    pub(super) torn: Option<(usize, u64)>,
}

impl Survey {
    pub(super) fn of(storage: &Arc<dyn Storage>) -> Result<Survey, LogError> {
        let io = |action, name: &str, e| LogError::io(action, path(storage, name), e);
        let names = storage
            .list()
            .map_err(|e| LogError::io("cannot list", storage.name(), e))?;
        let has = |name: &str| names.iter().any(|it| it == name);
        let mut damage = Vec::new();
        let checkpoint = match Checkpoint::load(&**storage) {
            Ok(checkpoint) => Some(checkpoint.unwrap_or_default()),
            Err(Some(error)) => return Err(io("cannot read", CHECKPOINT, error)),
            Err(None) => {
                damage.push(Damage {
                    file: CHECKPOINT.to_owned(),
                    position: None,
                    reason: "it is not what was written there; where the log starts and up to \
                             where it was compacted is not known"
                        .to_owned(),
                    lost: 0..0,
                });
                None
            }
        };
        let has_point = has(RECOVERY_POINT);
        let known = checkpoint.clone().unwrap_or_default();
        // As in `Log::open`: nothing is known of gaps in a log that kohort has not written.
        let is_foreign = !has(CHECKPOINT) && !has_point;
        let point = if has_point {
            RecoveryPoint::open(&**storage)
                .map_err(|e| io("cannot read", RECOVERY_POINT, e))?
                .1
        } else {
            0
        };
        let point = point.max(known.start_offset).max(known.flushed_to);
        let gaps_to = if is_foreign || checkpoint.is_none() {
            i64::MAX
        } else {
            known.flushed_to
        };

        let files = segment_files(&names, known.start_offset);
        let bases: Vec<i64> = files.iter().map(|(base, _)| *base).collect();
        let mut segments = Vec::new();
        for (at, (base, name)) in files.iter().enumerate() {
            let next_base = bases.get(at + 1).copied();
            let below = next_base.unwrap_or(i64::MAX);
            let ends_at = next_base.unwrap_or(point);
            // The newest segment is never compacted.
            let is_newest = at + 1 == files.len();
            let is_dense = *base >= gaps_to || checkpoint.is_none() && is_newest;
            let salvage = storage
                .open(name)
                .and_then(|file| salvage(&*file, *base, below, ends_at, is_dense))
                .map_err(|e| io("cannot read", name, e))?;
            segments.push(Surveyed {
                base_offset: *base,
                salvage,
            });
        }
        let must_begin_at_start = checkpoint.is_some() && !is_foreign;
        let start_offset = match bases.first() {
            Some(&first) if !must_begin_at_start => known.start_offset.max(first),
            _ => known.start_offset,
        };
        let mut survey = Survey {
            checkpoint,
            segments,
            damage,
            start_offset,
            end_offset: point,
            found_end: start_offset,
            unfinished_bytes: 0,
            torn: None,
        };
        survey.compare(&known, &bases, gaps_to, point);
        survey.end_offset = survey.found_end.max(point);
        survey.measure_torn(storage)?;
        Ok(survey)
    }

    /// Notes what is missing, from the first segment to the last.
    fn compare(&mut self, known: &Checkpoint, bases: &[i64], gaps_to: i64, point: i64) {
        let mut expected = self.start_offset;
        for (at, segment) in self.segments.iter().enumerate() {
            let base = segment.base_offset;
            let name = files::of(base, LOG);
            let is_first = at == 0;
            let unlisted = !known.segments.is_empty() && known.missing_segment(bases).is_some();
            if base > expected && !is_first && base > gaps_to && expected >= point {
                // Nothing from here on was flushed.
                self.torn = Some((at, 0));
                break;
            }
            if base > expected && (is_first || base > gaps_to) {
                self.damage.push(Damage {
                    file: name.clone(),
                    position: None,
                    reason: "the records before this segment are missing".to_owned(),
                    lost: expected..base,
                });
            } else if unlisted
                && let Some(&missing) = known.segments.iter().find(|&&it| {
                    (expected..base).contains(&it) && bases.binary_search(&it).is_err()
                })
            {
                self.damage.push(Damage {
                    file: files::of(missing, LOG),
                    position: None,
                    reason: "the segment is missing".to_owned(),
                    lost: missing..base,
                });
            }
            expected = expected.max(base);
            self.found_end = self.found_end.max(base);
            let Salvage { runs, damage } = &segment.salvage;
            for (position, reason) in damage {
                let before = runs.iter().rfind(|run| run.bytes.end <= *position);
                let from = before.map_or(base, |run| run.offsets.end);
                let next = runs.iter().find(|run| run.bytes.start > *position);
                if from >= point {
                    self.torn = Some((at, *position));
                    self.found_end = self.found_end.max(from);
                    expected = expected.max(from);
                    break;
                }
                let until = match (next, self.segments.get(at + 1)) {
                    (Some(run), _) => run.offsets.start,
                    (None, Some(next)) => next.base_offset,
                    (None, None) => point,
                };
                self.damage.push(Damage {
                    file: name.clone(),
                    position: Some(*position),
                    reason: reason.clone(),
                    lost: from..until,
                });
                expected = expected.max(until);
            }
            if self.torn.is_some() {
                break;
            }
            for run in runs {
                expected = expected.max(run.offsets.end);
                self.found_end = self.found_end.max(run.offsets.end);
            }
        }
        if expected < point {
            let file = match self.segments.last() {
                Some(last) => files::of(last.base_offset, LOG),
                None => LOG.to_owned(),
            };
            self.damage.push(Damage {
                file,
                position: None,
                reason: format!("the log ends here, but it was flushed up to offset {point}"),
                lost: expected..point,
            });
        }
    }

    fn measure_torn(&mut self, storage: &Arc<dyn Storage>) -> Result<(), LogError> {
        let Some((first, position)) = self.torn else {
            return Ok(());
        };
        let mut bytes = 0;
        for segment in &self.segments[first..] {
            let name = files::of(segment.base_offset, LOG);
            bytes += storage
                .open(&name)
                .and_then(|file| file.len())
                .map_err(|e| LogError::io("cannot read", path(storage, &name), e))?;
        }
        self.unfinished_bytes = bytes.saturating_sub(position);
        Ok(())
    }

    pub(super) fn checked(&self) -> Checked {
        let runs = self.segments.iter().flat_map(|it| &it.salvage.runs);
        Checked {
            start_offset: self.start_offset,
            end_offset: self.end_offset,
            segments: self.segments.len(),
            bytes: runs.map(|run| run.bytes.end - run.bytes.start).sum(),
            damage: self.damage.clone(),
            unfinished_bytes: self.unfinished_bytes,
        }
    }
}

/// Where the segments begin and which files hold them, as they will be once a replacement that a
/// crash interrupted is complete.
fn segment_files(names: &[String], start: i64) -> Vec<(i64, String)> {
    let with = |suffix: &str| {
        let names = names.iter().filter_map(|name| {
            let base = files::offset(name.strip_suffix(suffix)?, LOG)?;
            Some((base, name.clone()))
        });
        names.collect::<Vec<_>>()
    };
    let swaps: Vec<(i64, String)> = with(SWAP);
    let is_replaced = |base: i64| swaps.iter().any(|(swap, _)| *swap == base);
    let mut found: Vec<_> = with("")
        .into_iter()
        .filter(|it| !is_replaced(it.0))
        .collect();
    found.extend(swaps.iter().cloned());
    found.sort();
    // The next start removes those that end before the log starts.
    let gone: Range<usize> = 0..found
        .partition_point(|(base, _)| *base <= start)
        .saturating_sub(1);
    found.drain(gone);
    found
}
