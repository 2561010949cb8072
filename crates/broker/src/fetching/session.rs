//! Fetch sessions (KIP-227): a consumer that says only what has changed since it last asked.

use std::collections::BTreeMap;

use kohort_wire::ErrorCode;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use tokio::time::{Duration, Instant};

use super::{Batches, TopicKey, Wanted};

/// The epoch that asks for a new session.
const FIRST: i32 = 0;
/// The epoch that ends one, or wants none.
const FINAL: i32 = -1;

/// How long a session has been silent before a new one may take its place, as Kafka's
/// `min.incremental.fetch.session.eviction.ms`.
const EVICTION_AGE: Duration = Duration::from_secs(120);

/// How many partitions all sessions together may have: each request may bring more, of topics that do
/// not exist too. Beyond it consumers go without a session.
const PARTITIONS_MAX: usize = 500_000;

/// All sessions, at most so many.
#[derive(Debug)]
pub(crate) struct Sessions {
    sessions: Mutex<Kept>,
    sessions_max: usize,
    partitions_max: usize,
}

#[derive(Debug, Default)]
struct Kept {
    sessions: FxHashMap<i32, Session>,
    /// How many partitions all of them have.
    partitions: usize,
}

impl Kept {
    fn remove(&mut self, id: i32) {
        if let Some(session) = self.sessions.remove(&id) {
            self.partitions -= session.partitions.len();
        }
    }

    fn insert(&mut self, id: i32, session: Session) {
        self.partitions += session.partitions.len();
        self.sessions.insert(id, session);
    }
}

/// What a consumer wants, and what it was last told.
#[derive(Debug)]
struct Session {
    /// What the next request's epoch has to be.
    epoch: i32,
    by_id: bool,
    used_at: Instant,
    /// In the order in which they are read: what has had its turn goes to the end, so that a busy
    /// partition does not starve the others.
    partitions: BTreeMap<u64, Known>,
    places: FxHashMap<(TopicKey, i32), u64>,
    next_place: u64,
}

#[derive(Debug)]
struct Known {
    wanted: Wanted,
    /// The high watermark and the start of the log, as the consumer was last told them.
    told: Option<(i64, i64)>,
}

/// The session of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Context {
    /// None: all that was asked for is answered.
    None,
    /// A session that begins: likewise.
    New(i32),
    /// A session that goes on: only what has changed is answered.
    Incremental(i32),
}

impl Context {
    /// The id that the response carries.
    pub(crate) fn id(self) -> i32 {
        match self {
            Context::None => 0,
            Context::New(id) | Context::Incremental(id) => id,
        }
    }
}

impl Session {
    fn new(by_id: bool) -> Session {
        Session {
            epoch: 1,
            by_id,
            used_at: Instant::now(),
            partitions: BTreeMap::new(),
            places: FxHashMap::default(),
            next_place: 0,
        }
    }

    fn put(&mut self, wanted: Wanted) {
        let key = (wanted.topic.clone(), wanted.partition);
        if let Some(place) = self.places.get(&key)
            && let Some(known) = self.partitions.get_mut(place)
        {
            known.wanted = wanted;
            return;
        }
        let place = self.next_place;
        self.next_place += 1;
        self.places.insert(key, place);
        self.partitions.insert(place, Known { wanted, told: None });
    }

    fn remove(&mut self, key: &(TopicKey, i32)) {
        if let Some(place) = self.places.remove(key) {
            self.partitions.remove(&place);
        }
    }

    fn move_to_end(&mut self, place: u64) {
        if let Some(known) = self.partitions.remove(&place) {
            let key = (known.wanted.topic.clone(), known.wanted.partition);
            self.places.insert(key, self.next_place);
            self.partitions.insert(self.next_place, known);
            self.next_place += 1;
        }
    }

    fn wanted(&self) -> Vec<Wanted> {
        let known = self.partitions.values();
        known.map(|known| known.wanted.clone()).collect()
    }
}

impl Sessions {
    pub(crate) fn new(sessions_max: usize) -> Sessions {
        Sessions {
            sessions: Mutex::default(),
            sessions_max,
            partitions_max: PARTITIONS_MAX,
        }
    }

    /// Begins on a request: finds its session, and what it wants in all.
    pub(crate) fn begin(
        &self,
        id: i32,
        epoch: i32,
        by_id: bool,
        asked: Vec<Wanted>,
        forgotten: &[(TopicKey, i32)],
    ) -> Result<(Context, Vec<Wanted>), ErrorCode> {
        let mut sessions = self.sessions.lock();
        if epoch == FINAL || epoch == FIRST {
            // Either way it is the end of the session that there was.
            sessions.remove(id);
            if epoch == FINAL || sessions.partitions + asked.len() > self.partitions_max {
                return Ok((Context::None, asked));
            }
            let Some(id) = self.free_id(&mut sessions) else {
                return Ok((Context::None, asked));
            };
            let mut session = Session::new(by_id);
            for wanted in &asked {
                session.put(wanted.clone());
            }
            sessions.insert(id, session);
            return Ok((Context::New(id), asked));
        }
        let Kept {
            sessions: kept,
            partitions,
        } = &mut *sessions;
        let session = kept
            .get_mut(&id)
            .ok_or(ErrorCode::FETCH_SESSION_ID_NOT_FOUND)?;
        if session.epoch != epoch {
            return Err(ErrorCode::INVALID_FETCH_SESSION_EPOCH);
        }
        if session.by_id != by_id {
            return Err(ErrorCode::FETCH_SESSION_TOPIC_ID_ERROR);
        }
        session.epoch = epoch.checked_add(1).unwrap_or(1);
        session.used_at = Instant::now();
        *partitions -= session.partitions.len();
        for wanted in asked {
            session.put(wanted);
        }
        for key in forgotten {
            session.remove(key);
        }
        *partitions += session.partitions.len();
        if *partitions > self.partitions_max {
            // It begins anew, and goes without one.
            sessions.remove(id);
            return Err(ErrorCode::FETCH_SESSION_ID_NOT_FOUND);
        }
        Ok((Context::Incremental(id), session.wanted()))
    }

    /// An id for a new session, if there is room or another session has been idle for long.
    fn free_id(&self, sessions: &mut Kept) -> Option<i32> {
        if self.sessions_max == 0 {
            return None;
        }
        if sessions.sessions.len() >= self.sessions_max {
            let oldest = sessions
                .sessions
                .iter()
                .min_by_key(|(_, session)| session.used_at);
            let (&oldest, session) = oldest?;
            if session.used_at.elapsed() < EVICTION_AGE {
                return None;
            }
            sessions.remove(oldest);
        }
        loop {
            let mut bytes = [0; 4];
            crate::random_bytes(&mut bytes);
            let id = i32::from_ne_bytes(bytes) & i32::MAX;
            if id != 0 && !sessions.sessions.contains_key(&id) {
                return Some(id);
            }
        }
    }

    /// Ends with a request: notes what the consumer is told. Gives for each partition whether it
    /// has to be in the response.
    pub(crate) fn finish(
        &self,
        context: Context,
        wanted: &[Wanted],
        read: &[Batches],
    ) -> Vec<bool> {
        let is_new = !matches!(context, Context::Incremental(_));
        let mut sessions = self.sessions.lock();
        let Some(session) = sessions.sessions.get_mut(&context.id()) else {
            return vec![true; wanted.len()];
        };
        let mut told = Vec::with_capacity(wanted.len());
        for (wanted, batches) in wanted.iter().zip(read) {
            let key = (wanted.topic.clone(), wanted.partition);
            let Some(&place) = session.places.get(&key) else {
                told.push(true);
                continue;
            };
            let Some(known) = session.partitions.get_mut(&place) else {
                told.push(true);
                continue;
            };
            let news = (batches.high_watermark, batches.start_offset);
            let has_news = is_new
                || batches.is_urgent()
                || !batches.records.is_empty()
                || known.told != Some(news);
            known.told = if batches.error.is_error() {
                // Until it is well again, the error is news each time.
                None
            } else {
                Some(news)
            };
            told.push(has_news);
            if !batches.records.is_empty() {
                session.move_to_end(place);
            }
        }
        told
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn wanted(partition: i32) -> Wanted {
        Wanted {
            topic: TopicKey::Name("t".into()),
            partition,
            offset: 0,
            bytes_max: 1000,
            current_leader_epoch: -1,
            last_fetched_epoch: -1,
        }
    }

    fn batches(records: &'static [u8], high_watermark: i64) -> Batches {
        Batches {
            error: ErrorCode::NONE,
            high_watermark,
            start_offset: 0,
            records: Bytes::from_static(records),
            appended_bytes: 0,
            diverging: None,
        }
    }

    fn indexes(wanted: &[Wanted]) -> Vec<i32> {
        wanted.iter().map(|wanted| wanted.partition).collect()
    }

    #[test]
    fn a_session_remembers_what_is_not_said_again_and_tells_only_news() {
        let sessions = Sessions::new(10);
        let (new, asked) = sessions
            .begin(0, 0, false, vec![wanted(0), wanted(1)], &[])
            .unwrap();
        let id = new.id();
        assert_eq!(new, Context::New(id));
        let read = [batches(b"", 5), batches(b"", 7)];
        assert_eq!(sessions.finish(new, &asked, &read), [true, true]);

        let (next, asked) = sessions.begin(id, 1, false, vec![], &[]).unwrap();
        assert_eq!(indexes(&asked), [0, 1]);
        let read = [batches(b"x", 6), batches(b"", 7)];
        assert_eq!(sessions.finish(next, &asked, &read), [true, false]);

        // What has had its turn comes last.
        let forgotten = [(TopicKey::Name("t".into()), 5)];
        let (_, asked) = sessions
            .begin(id, 2, false, vec![wanted(2)], &forgotten)
            .unwrap();
        assert_eq!(indexes(&asked), [1, 0, 2]);
    }

    #[test]
    fn a_session_that_is_not_known_or_out_of_step_is_refused() {
        let sessions = Sessions::new(10);
        let begin = |id, epoch, by_id| sessions.begin(id, epoch, by_id, vec![], &[]).map(|it| it.0);
        let id = begin(0, 0, false).unwrap().id();
        assert_eq!(
            begin(id ^ 1, 1, false),
            Err(ErrorCode::FETCH_SESSION_ID_NOT_FOUND)
        );
        assert_eq!(
            begin(id, 2, false),
            Err(ErrorCode::INVALID_FETCH_SESSION_EPOCH)
        );
        assert_eq!(
            begin(id, 1, true),
            Err(ErrorCode::FETCH_SESSION_TOPIC_ID_ERROR)
        );
        assert_eq!(begin(id, 1, false), Ok(Context::Incremental(id)));
        assert_eq!(begin(id, -1, false), Ok(Context::None));
        assert_eq!(
            begin(id, 2, false),
            Err(ErrorCode::FETCH_SESSION_ID_NOT_FOUND)
        );
    }

    #[test]
    fn sessions_have_so_many_partitions_together_and_no_more() {
        let sessions = Sessions {
            partitions_max: 5,
            ..Sessions::new(10)
        };
        let some = |from: i32, count: i32| (from..from + count).map(wanted).collect::<Vec<_>>();
        let begin = |id, epoch, asked| sessions.begin(id, epoch, false, asked, &[]);
        let first = begin(0, 0, some(0, 3)).unwrap().0.id();
        assert_eq!(begin(0, 0, some(0, 3)).unwrap().0, Context::None);
        let second = begin(0, 0, some(0, 2)).unwrap().0.id();
        // What it has already is nothing more.
        assert!(begin(first, 1, some(0, 3)).is_ok());
        assert_eq!(
            begin(first, 2, some(9, 1)).unwrap_err(),
            ErrorCode::FETCH_SESSION_ID_NOT_FOUND
        );
        // Its place is free.
        assert!(begin(second, 1, some(2, 3)).is_ok());
        let forgotten: Vec<_> = (0..5).map(|n| (wanted(n).topic, n)).collect();
        let (_, left) = sessions
            .begin(second, 2, false, vec![], &forgotten)
            .unwrap();
        assert!(left.is_empty());
        assert_ne!(begin(0, 0, some(0, 5)).unwrap().0.id(), 0);
    }

    #[test]
    fn when_there_is_no_room_consumers_go_without_a_session() {
        let sessions = Sessions::new(1);
        assert_ne!(sessions.begin(0, 0, false, vec![], &[]).unwrap().0.id(), 0);
        assert_eq!(
            sessions.begin(0, 0, false, vec![], &[]).unwrap().0,
            Context::None
        );
    }
}
