//! The two tasks of a connection: one writes requests in the order in which they were sent, the other
//! reads responses and completes the calls that wait for them.

use std::{
    collections::VecDeque,
    io,
    sync::{Arc, OnceLock},
    time::Duration,
};

use bytes::Bytes;
use kohort_wire::{codec::Frame, frame};
use parking_lot::Mutex;
use tokio::{
    io::{AsyncWriteExt, ReadHalf, WriteHalf},
    sync::{OwnedSemaphorePermit, mpsc, oneshot},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use super::{
    frames::{FrameReader, Pieces},
    transport::Transport,
};
use crate::{Error, Result, runtime::on_runtime_end};

/// How often it is looked whether answers are overdue.
const OVERDUE_CHECK: Duration = Duration::from_millis(500);

/// The longest pause that a broker is granted: quotas are measured over a few seconds.
const THROTTLE_MAX: Duration = Duration::from_secs(60);

/// What the handles and the tasks have in common.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) broker: i32,
    pub(super) address: String,
    /// In the order of the requests on the wire.
    pub(super) awaited: Mutex<VecDeque<Awaited>>,
    pub(super) ended: CancellationToken,
    pub(super) reason: OnceLock<Error>,
    /// Until when the broker wants no requests (KIP-219).
    throttled_until: Mutex<Option<Instant>>,
}

#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) frame: Frame,
    /// `None` for a request that is not answered.
    pub(super) awaited: Option<Awaited>,
    /// Told when the request has been written.
    pub(super) written: Option<oneshot::Sender<()>>,
}

#[derive(Debug)]
pub(super) struct Awaited {
    pub(super) correlation_id: i32,
    pub(super) overdue: Instant,
    pub(super) answer: oneshot::Sender<Bytes>,
    pub(super) _in_flight: OwnedSemaphorePermit,
}

impl Shared {
    pub(super) fn new(broker: i32, address: &str) -> Shared {
        Shared {
            broker,
            address: address.to_owned(),
            awaited: Mutex::default(),
            ended: CancellationToken::new(),
            reason: OnceLock::new(),
            throttled_until: Mutex::default(),
        }
    }

    pub(super) fn error(&self) -> Error {
        let unknown = || self.disconnected("it was closed".to_owned());
        self.reason.get().cloned().unwrap_or_else(unknown)
    }

    fn disconnected(&self, reason: String) -> Error {
        Error::Disconnected {
            broker: self.broker,
            address: self.address.clone(),
            reason,
        }
    }

    pub(super) fn end(&self, reason: String) {
        self.end_with(self.disconnected(reason));
    }

    /// Ends the connection. The first reason counts.
    pub(super) fn end_with(&self, error: Error) {
        if self.reason.set(error).is_ok() {
            tracing::debug!(broker = self.broker, address = self.address, reason = %self.error(),
                "connection ended");
        }
        self.ended.cancel();
        // Dropping the senders wakes everybody who waits.
        self.awaited.lock().clear();
    }

    /// The broker asks for a pause. It reads nothing from the connection meanwhile, so sending would
    /// only fill buffers and let requests time out.
    pub(super) fn throttle(&self, throttle_time_ms: i32) {
        let Ok(ms @ 1..) = u64::try_from(throttle_time_ms) else {
            return;
        };
        let pause = Duration::from_millis(ms).min(THROTTLE_MAX);
        let until = Instant::now() + pause;
        tracing::debug!(broker = self.broker, ?pause, "throttled");
        crate::measure::throttled(pause);
        let mut throttled_until = self.throttled_until.lock();
        *throttled_until = (*throttled_until).max(Some(until));
    }

    /// Until when no request should be sent, if not now.
    pub(super) fn throttled_until(&self) -> Option<Instant> {
        let throttled_until = *self.throttled_until.lock();
        throttled_until.filter(|until| *until > Instant::now())
    }

    /// Completes the call that waits for a response.
    fn answered(&self, frame: Bytes) -> Result<(), String> {
        let id = frame::correlation_id(&frame).map_err(|error| error.to_string())?;
        let awaited = self.awaited.lock().pop_front();
        match awaited {
            Some(awaited) if awaited.correlation_id == id => {
                // The caller may have stopped waiting.
                let _ = awaited.answer.send(frame);
                Ok(())
            }
            Some(awaited) => Err(format!(
                "an answer to request {id} came instead of one to {}",
                awaited.correlation_id
            )),
            None => Err(format!("an answer to request {id}, which was not asked")),
        }
    }

    fn check_overdue(&self) -> Result<(), String> {
        match self.awaited.lock().front() {
            Some(awaited) if awaited.overdue <= Instant::now() => {
                Err("a request was not answered in time".to_owned())
            }
            _ => Ok(()),
        }
    }
}

/// Runs a task of a connection. If its runtime ends, so does the connection.
pub(super) fn guarded(
    shared: Arc<Shared>,
    task: impl Future<Output = ()>,
) -> impl Future<Output = ()> {
    on_runtime_end(task, move || shared.end_with(Error::RuntimeEnded))
}

pub(super) async fn write_requests(
    shared: Arc<Shared>,
    mut stream: WriteHalf<Transport>,
    mut outgoing: mpsc::UnboundedReceiver<Outgoing>,
) {
    loop {
        let first = tokio::select! {
            first = outgoing.recv() => first,
            () = shared.ended.cancelled() => None,
        };
        // No handle is left, or the connection has ended.
        let Some(first) = first else { break };
        let mut pieces = Pieces::default();
        let mut told = Vec::new();
        {
            let mut awaited = shared.awaited.lock();
            let rest = std::iter::from_fn(|| outgoing.try_recv().ok());
            for request in std::iter::once(first).chain(rest).take(64) {
                awaited.extend(request.awaited);
                told.extend(request.written);
                request
                    .frame
                    .into_pieces()
                    .into_iter()
                    .for_each(|piece| pieces.push(piece));
            }
        }
        let writing = async {
            stream.write_all_buf(&mut pieces).await?;
            stream.flush().await
        };
        let written = tokio::select! {
            written = writing => written,
            () = shared.ended.cancelled() => break,
        };
        if let Err(error) = written {
            shared.end(error.to_string());
            break;
        }
        for written in told {
            let _ = written.send(());
        }
    }
    shared.end("it was closed here".to_owned());
    // Requests that came too late: their senders learn of it.
    outgoing.close();
    while outgoing.try_recv().is_ok() {}
    let _ = tokio::time::timeout(Duration::from_secs(1), stream.shutdown()).await;
}

pub(super) async fn read_responses(
    shared: Arc<Shared>,
    mut reader: FrameReader<ReadHalf<Transport>>,
) {
    let mut overdue_check = tokio::time::interval(OVERDUE_CHECK);
    overdue_check.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        let problem = tokio::select! {
            frame = reader.next() => match frame {
                Ok(frame) => shared.answered(frame),
                Err(error) if error.kind() == io::ErrorKind::InvalidData => Err(error.to_string()),
                Err(error) => return shared.end(error.to_string()),
            },
            _ = overdue_check.tick() => match shared.check_overdue() {
                Ok(()) => Ok(()),
                Err(reason) => return shared.end(reason),
            },
            () = shared.ended.cancelled() => return,
        };
        if let Err(problem) = problem {
            return shared.end_with(Error::Protocol {
                broker: shared.broker,
                address: shared.address.clone(),
                problem,
            });
        }
    }
}
