//! Compaction: of each key the latest record is kept, in place of segments that hold older ones.
//!
//! As Kafka's cleaner: a map of the latest offset of each key in what is not compacted yet, then
//! all segments up to there are written anew without what is outdated, and swapped in. Offsets
//! stay what they are. The newest segment is never touched. Tombstones stay for
//! `delete.retention.ms` after they were first compacted (KIP-534), and the last batch of a known
//! idempotent producer stays, if only its header, so that its sequence numbers survive.

use std::{collections::HashMap, sync::Arc};

use kohort_wire::records::{BatchBuilder, BatchHeader};
use rustc_hash::FxHashMap;

use super::{Log, Maintenance, STORED_BATCH_MAX};
use crate::{
    LogConfig, LogError,
    checkpoint::Checkpoint,
    files::{self, CLEANED, INDEX, LOG, SWAP, TIME_INDEX},
    scan::Scanned,
    segment::{Segment, path},
};

/// About what an entry takes beside its key, in bytes.
const ENTRY_OVERHEAD: usize = 64;

struct Cleaner<'a> {
    config: &'a LogConfig,
    now_ms: i64,
    latest: HashMap<Box<[u8]>, i64>,
    /// The last offset of each known producer.
    producers: FxHashMap<i64, i64>,
    scratch: Vec<u8>,
}

impl Log {
    /// The caller holds the maintenance.
    pub(super) fn compact(
        &self,
        checkpoint: &mut Checkpoint,
        config: &LogConfig,
        now_ms: i64,
        done: &mut Maintenance,
    ) -> Result<(), LogError> {
        self.roll_overdue(config, now_ms)?;
        let segments = self.segments();
        let Some((active, closed)) = segments.split_last() else {
            return Ok(());
        };
        let Some(dirty) = dirty(&segments, checkpoint.cleaned_to, config, now_ms)? else {
            return Ok(());
        };
        // Gaps are as compaction leaves them only where everything was flushed.
        if self.flushed_offset() < active.base_offset {
            self.flush()?;
        }
        let mut cleaner = Cleaner {
            config,
            now_ms,
            latest: HashMap::new(),
            producers: self.last_offsets(),
            scratch: Vec::new(),
        };
        let end = segments[dirty.end].base_offset;
        let cleaned_to = cleaner.read_keys(&closed[dirty.clone()], checkpoint.cleaned_to, end)?;
        let concerned = closed.partition_point(|segment| segment.base_offset < cleaned_to);
        let groups: Vec<_> = groups(&closed[..concerned], config).collect();
        // Before anything is replaced: from now on there may be gaps up to there, and these segments
        // are there before and after each replacement.
        checkpoint.flushed_to = checkpoint.flushed_to.max(segments[concerned].base_offset);
        checkpoint.segments = groups.iter().map(|group| group[0].base_offset).collect();
        self.store_checkpoint(checkpoint)?;
        for group in groups {
            self.replace(&mut cleaner, group, done)?;
        }
        let moved = Checkpoint {
            cleaned_to,
            ..checkpoint.clone()
        };
        self.store_checkpoint(&moved)?;
        *checkpoint = moved;
        Ok(())
    }

    /// Ends the newest segment if what is in it has been kept out of compaction for longer than
    /// `max.compaction.lag.ms`, even if nothing is appended any more.
    fn roll_overdue(&self, config: &LogConfig, now_ms: i64) -> Result<(), LogError> {
        let mut writer = self.writer.lock();
        let active = self.view.read().active().clone();
        if active.size() == 0 {
            return Ok(());
        }
        let oldest_ms = match active.first_timestamp()? {
            timestamp @ 0.. => timestamp,
            _ => writer.segment_began_ms.unwrap_or(active.written_ms()),
        };
        if is_overdue(config, oldest_ms, now_ms) {
            self.roll(&mut writer, config)?;
        }
        Ok(())
    }

    fn last_offsets(&self) -> FxHashMap<i64, i64> {
        let writer = self.writer.lock();
        let last =
            |(id, state): (i64, &crate::ProducerState)| Some((id, state.last_batch()?.last_offset));
        writer.producers.iter().filter_map(last).collect()
    }

    /// Writes the segments of the group anew, as one, and puts that in their place.
    fn replace(
        &self,
        cleaner: &mut Cleaner<'_>,
        group: &[Arc<Segment>],
        done: &mut Maintenance,
    ) -> Result<(), LogError> {
        let base = group[0].base_offset;
        let interval = cleaner.config.index_interval_bytes;
        let cleaned = Segment::create(&self.storage, base, CLEANED, interval)?;
        for segment in group {
            cleaner.clean(segment, &cleaned)?;
        }
        let before: u64 = group.iter().map(|segment| segment.size()).sum();
        // What has no timestamps gets no younger by it.
        let written_ms = group.iter().map(|segment| segment.written_ms()).max();
        cleaned.set_written_ms(written_ms.unwrap_or(-1));
        cleaned.write_index_as(CLEANED)?;
        let io = |action, name: &str, e| LogError::io(action, path(&self.storage, name), e);
        cleaned
            .sync(false)
            .map_err(|e| io("cannot flush", &(files::of(base, LOG) + CLEANED), e))?;

        // From the moment there is a `.log.swap`, the next start completes what follows.
        let names = [INDEX, TIME_INDEX, LOG].map(|kind| files::of(base, kind));
        let rename = |name: &str, from: &str, to: &str| {
            let (from, to) = (format!("{name}{from}"), format!("{name}{to}"));
            let renamed = self.storage.rename(&from, &to);
            renamed.map_err(|e| io("cannot rename", &from, e))
        };
        let sync = || self.storage.sync().map_err(|e| io("cannot flush", "", e));
        for name in &names {
            rename(name, CLEANED, SWAP)?;
        }
        sync()?;
        let after = cleaned.size();
        for segment in group {
            segment.retire();
        }
        {
            let mut view = self.view.write();
            let first = view
                .segments()
                .partition_point(|segment| segment.base_offset < base);
            view.replace(first..first + group.len(), Arc::new(cleaned));
        }
        for segment in group {
            segment.remove()?;
        }
        for name in &names {
            rename(name, SWAP, "")?;
        }
        sync()?;
        done.segments_compacted += group.len();
        done.bytes_compacted += before.saturating_sub(after);
        Ok(())
    }
}

/// The segments to be compacted, if it is time.
fn dirty(
    segments: &[Arc<Segment>],
    cleaned_to: i64,
    config: &LogConfig,
    now_ms: i64,
) -> Result<Option<std::ops::Range<usize>>, LogError> {
    let closed = &segments[..segments.len() - 1];
    let is_dirty = |&at: &usize| segments[at + 1].base_offset > cleaned_to && closed[at].size() > 0;
    let Some(start) = (0..closed.len()).find(is_dirty) else {
        return Ok(None);
    };
    let young = |segment: &Arc<Segment>| {
        config.min_compaction_lag_ms > 0
            && segment.latest_ms() > now_ms.saturating_sub(config.min_compaction_lag_ms)
    };
    let end = closed[start..]
        .iter()
        .position(young)
        .map_or(closed.len(), |at| start + at);
    let bytes =
        |segments: &[Arc<Segment>]| -> u64 { segments.iter().map(|segment| segment.size()).sum() };
    let dirty = bytes(&closed[start..end]);
    let all = dirty + bytes(&closed[..start]);
    let worth_it = dirty as f64 > config.min_cleanable_dirty_ratio * all as f64;
    let mut overdue = false;
    for segment in &closed[start..end] {
        // Reading the first timestamp of a segment costs a read, and is rarely needed.
        overdue = overdue
            || config.max_compaction_lag_ms < i64::MAX
                && is_overdue(config, segment.oldest_ms()?, now_ms);
    }
    Ok((dirty > 0 && (worth_it || overdue)).then_some(start..end))
}

/// Whether a record of that time has been kept out of compaction for too long.
fn is_overdue(config: &LogConfig, time_ms: i64, now_ms: i64) -> bool {
    time_ms >= 0 && now_ms.saturating_sub(time_ms) > config.max_compaction_lag_ms
}

/// Neighbours that fit one segment together.
fn groups<'a>(
    segments: &'a [Arc<Segment>],
    config: &LogConfig,
) -> impl Iterator<Item = &'a [Arc<Segment>]> {
    let segment_bytes = u64::from(config.segment_bytes);
    let mut rest = segments;
    std::iter::from_fn(move || {
        let first = rest.first()?;
        let mut size = first.size();
        let mut count = 1;
        while let Some(next) = rest.get(count)
            && size + next.size() <= segment_bytes
            // All offsets of `next` are below the base of the one behind it.
            && rest.get(count + 1).is_some_and(|behind| first.can_hold(behind.base_offset))
        {
            size += next.size();
            count += 1;
        }
        let (group, behind) = rest.split_at(count);
        rest = behind;
        Some(group)
    })
}

impl Cleaner<'_> {
    /// Notes the latest offset of each key in the segments from `from` on, as far as memory
    /// allows. Returns up to where that is.
    fn read_keys(
        &mut self,
        segments: &[Arc<Segment>],
        from: i64,
        end: i64,
    ) -> Result<i64, LogError> {
        let mut room = self.config.cleaner_buffer_bytes;
        for segment in segments {
            let mut scanner = segment.scan(0);
            while let Some(batch) = scanner.next().map_err(|e| segment.scan_error(e))? {
                let Scanned { header, bytes, .. } = batch;
                if header.next_offset() <= from || header.is_control() {
                    continue;
                }
                // At least one batch each time, or it would never get on.
                if room == 0 && !self.latest.is_empty() {
                    return Ok(header.base_offset);
                }
                let limit = STORED_BATCH_MAX;
                for record in header.records_in(bytes, &mut self.scratch, limit)? {
                    let record = record?;
                    let Some(key) = record.key else { continue };
                    match self.latest.get_mut(key) {
                        Some(offset) => *offset = record.offset,
                        None => {
                            room = room.saturating_sub(key.len() + ENTRY_OVERHEAD);
                            self.latest.insert(key.into(), record.offset);
                        }
                    }
                }
            }
        }
        Ok(end)
    }

    /// Appends to `cleaned` what is to be kept of `segment`.
    fn clean(&mut self, segment: &Segment, cleaned: &Segment) -> Result<(), LogError> {
        let now_ms = self.now_ms;
        let write = |bytes: &[u8], header: BatchHeader| {
            cleaned
                .append(bytes, std::iter::once(header), now_ms)
                .map_err(|e| LogError::io("cannot write", cleaned.name() + CLEANED, e))
        };
        let mut scanner = segment.scan(0);
        while let Some(batch) = scanner.next().map_err(|e| segment.scan_error(e))? {
            let Scanned { header, bytes, .. } = batch;
            // Transaction markers stay: they go when there are transactions to look at.
            if header.is_control() {
                write(bytes, header)?;
                continue;
            }
            let kept = self.keep(&header, bytes)?;
            let last_of_producer = header.has_producer_id()
                && self.producers.get(&header.producer_id) == Some(&header.last_offset());
            let unchanged =
                kept.count == header.count && kept.horizon == header.delete_horizon_ms();
            match kept.count {
                0 if !last_of_producer => {}
                _ if unchanged => write(bytes, header)?,
                _ => {
                    let mut builder = BatchBuilder::new(header.compression()?, None);
                    builder.start_like(&header, kept.horizon);
                    if kept.count > 0 {
                        self.copy(&header, bytes, &mut builder)?;
                    }
                    let bytes = builder.build();
                    write(bytes, BatchHeader::parse(bytes)?)?;
                }
            }
        }
        Ok(())
    }

    fn keep(&mut self, header: &BatchHeader, bytes: &[u8]) -> Result<Kept, LogError> {
        let mut kept = Kept {
            count: 0,
            horizon: header.delete_horizon_ms(),
        };
        let mut scratch = std::mem::take(&mut self.scratch);
        for record in header.records_in(bytes, &mut scratch, STORED_BATCH_MAX)? {
            let record = record?;
            if !self.is_kept(header, record.offset, record.key, record.value) {
                continue;
            }
            kept.count += 1;
            if record.value.is_none() && kept.horizon.is_none() {
                kept.horizon = Some(self.now_ms.saturating_add(self.config.delete_retention_ms));
            }
        }
        self.scratch = scratch;
        Ok(kept)
    }

    fn copy(
        &mut self,
        header: &BatchHeader,
        bytes: &[u8],
        builder: &mut BatchBuilder,
    ) -> Result<(), LogError> {
        let mut scratch = std::mem::take(&mut self.scratch);
        for record in header.records_in(bytes, &mut scratch, STORED_BATCH_MAX)? {
            let record = record?;
            if self.is_kept(header, record.offset, record.key, record.value) {
                builder
                    .append_at(
                        record.offset,
                        record.timestamp,
                        record.key,
                        record.value,
                        record.headers,
                    )
                    .map_err(|_| {
                        kohort_wire::records::RecordsError::Invalid("a batch is out of order")
                    })?;
            }
        }
        self.scratch = scratch;
        Ok(())
    }

    fn is_kept(
        &self,
        header: &BatchHeader,
        offset: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
    ) -> bool {
        let Some(key) = key else { return false };
        let outdated = self.latest.get(key).is_some_and(|&latest| latest > offset);
        let expired = header
            .delete_horizon_ms()
            .is_some_and(|horizon| horizon <= self.now_ms);
        !outdated && (value.is_some() || !expired)
    }
}

struct Kept {
    count: i32,
    horizon: Option<i64>,
}
