//! Records on their way to the application. Batches are decoded outside of the reader, so that a
//! shell does not have to lock it meanwhile.

use kohort_wire::records::RecordsError;

use super::{
    Reader, ReaderError, TopicPartition,
    fetched::{Chunk, Decoding, Fetched},
    offsets::Position,
    partition::Next,
    progress::HandleId,
};

/// Records for the application, by partition, in the order of their offsets.
#[derive(Debug, Default)]
pub struct Chunks {
    /// Consecutive records of one partition each.
    pub chunks: Vec<(TopicPartition, Chunk)>,
    /// The number of records.
    pub count: usize,
}

impl Chunks {
    fn truncate(&mut self, chunks: usize) {
        let dropped = self.chunks.drain(chunks..);
        self.count -= dropped.map(|(_, chunk)| chunk.count).sum::<usize>();
    }
}

/// Fetched batches of one partition that are being decoded.
#[derive(Debug)]
pub struct Delivery {
    name: TopicPartition,
    lease: u64,
    fetched: Fetched,
    /// The number of chunks that were there before.
    first: usize,
    is_used_up: bool,
    problem: Option<RecordsError>,
}

impl Delivery {
    /// Decodes records until there are `count_max`, or none are left.
    pub fn decode(&mut self, chunks: &mut Chunks, count_max: usize, decoding: &Decoding) {
        self.first = chunks.chunks.len();
        while chunks.count < count_max && !self.is_used_up {
            match self.fetched.next(count_max - chunks.count, decoding) {
                Ok(Some(chunk)) => {
                    chunks.count += chunk.count;
                    chunks.chunks.push((self.name.clone(), chunk));
                }
                Ok(None) => self.is_used_up = true,
                Err(problem) => {
                    self.problem = Some(problem);
                    self.is_used_up = true;
                }
            }
        }
    }
}

/// What a delivery has come to.
#[derive(Debug)]
pub struct Delivered {
    /// The partition.
    pub partition: TopicPartition,
    /// How many records were delivered.
    pub count: usize,
    /// The number of records after them, if known.
    pub lag: Option<i64>,
    /// Whether there is room to fetch more.
    pub has_room: bool,
}

impl Reader {
    /// Takes fetched batches of the partition whose turn it is. `None` if there are none.
    pub fn begin_delivery(&mut self) -> Option<Delivery> {
        while let Some(name) = self.turns.pop_front() {
            let Some(partition) = self.partitions.get_mut(&name) else {
                continue;
            };
            partition.has_turn = false;
            // A paused partition gets another turn when it is resumed.
            if partition.is_deliverable()
                && let Some(fetched) = partition.fetched.pop_front()
            {
                return Some(Delivery {
                    lease: partition.lease,
                    name,
                    fetched,
                    first: 0,
                    is_used_up: false,
                    problem: None,
                });
            }
        }
        None
    }

    /// Delivers to `handle` what was decoded. If the partition was revoked or sought meanwhile, its
    /// records are removed from `chunks` and `None` is returned.
    pub fn end_delivery(
        &mut self,
        delivery: Delivery,
        chunks: &mut Chunks,
        handle: HandleId,
    ) -> Option<Delivered> {
        let Delivery {
            name,
            lease,
            fetched,
            first,
            is_used_up,
            problem,
        } = delivery;
        let partition = self.partitions.get_mut(&name);
        let Some(partition) = partition.filter(|partition| partition.lease == lease) else {
            chunks.truncate(first);
            return None;
        };
        let position = Position {
            offset: fetched.next,
            leader_epoch: (fetched.leader_epoch >= 0).then_some(fetched.leader_epoch),
        };
        if is_used_up {
            partition.fetched_bytes -= fetched.size;
            self.fetched_bytes -= fetched.size;
        } else {
            partition.fetched.push_front(fetched);
        }
        let new = &mut chunks.chunks[first..];
        let count = new.iter().map(|(_, chunk)| chunk.count).sum();
        match new.last_mut() {
            Some((_, last)) => {
                // Control records and aborted ones that follow are skipped along with it.
                last.next = position.offset;
                partition.progress.deliver(handle, position);
                self.handles.note_delivered(handle, &name);
            }
            None => partition.progress.skip_to(position),
        }
        let lag = partition.lag(self.config.committed_only);
        if let Some(problem) = problem {
            partition.next = Next::Stopped;
            self.fetched_bytes -= partition.drop_fetched();
            self.report(ReaderError::Malformed {
                partition: name.clone(),
                offset: position.offset,
                problem: problem.to_string(),
            });
        } else if !partition.fetched.is_empty() {
            self.add_turn(&name);
        }
        Some(Delivered {
            partition: name,
            count,
            lag,
            has_room: is_used_up,
        })
    }

    /// Queues a partition for delivery, behind those that were queued before.
    pub(crate) fn add_turn(&mut self, name: &TopicPartition) {
        let partition = self.partitions.get_mut(name);
        if partition.is_some_and(|partition| !std::mem::replace(&mut partition.has_turn, true)) {
            self.turns.push_back(name.clone());
        }
    }
}
