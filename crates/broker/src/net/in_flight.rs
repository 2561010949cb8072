//! The requests of a connection that are being worked on.

use std::{
    collections::VecDeque,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use kohort_wire::codec::Frame;

use super::Reserved;

/// What comes of a request.
#[derive(Debug)]
pub(crate) enum Answer {
    /// To be sent; with what it holds of the memory for responses.
    Send(Frame, Reserved),
    /// Nothing is sent: a produce that wants no answer.
    Nothing,
    /// The connection is to be closed, for this reason.
    Close(String),
}

impl Answer {
    fn length(&self) -> usize {
        match self {
            Answer::Send(frame, _) => frame.len(),
            Answer::Nothing | Answer::Close(_) => 0,
        }
    }
}

/// A request being worked on.
pub(super) type Work = Pin<Box<dyn Future<Output = Answer> + Send>>;

#[derive(Debug)]
enum Slot {
    Working(Box<WorkSlot>),
    Done(Answer),
}

struct WorkSlot {
    work: Work,
    /// What the request's frame holds of the memory for requests.
    _reserved: Reserved,
}

impl std::fmt::Debug for WorkSlot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WorkSlot")
    }
}

/// The requests of a connection that are being worked on. Kafka takes one at a time; here they
/// begin in order and are answered in order, and what lies between (the flush of a produce) they do
/// side by side.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    slots: VecDeque<Slot>,
    done_bytes: usize,
}

impl InFlight {
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// How many bytes of responses are there already, and wait for their turn.
    pub(super) fn done_bytes(&self) -> usize {
        self.done_bytes
    }

    /// Starts work and runs it as far as it gets, so that the next request finds done what this one
    /// does at once (an append, a place in a queue).
    pub(super) async fn start(&mut self, mut work: Work, reserved: Reserved) {
        let polled = std::future::poll_fn(|cx| Poll::Ready(work.as_mut().poll(cx))).await;
        self.slots.push_back(match polled {
            Poll::Ready(answer) => {
                self.done_bytes += answer.length();
                Slot::Done(answer)
            }
            Poll::Pending => Slot::Working(Box::new(WorkSlot {
                work,
                _reserved: reserved,
            })),
        });
    }

    /// The answer to the oldest request, when it is there. May be dropped without losing anything.
    pub(super) async fn next(&mut self) -> Answer {
        std::future::poll_fn(|cx| self.poll(cx)).await
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Answer> {
        for slot in &mut self.slots {
            if let Slot::Working(working) = slot
                && let Poll::Ready(answer) = working.work.as_mut().poll(cx)
            {
                self.done_bytes += answer.length();
                *slot = Slot::Done(answer);
            }
        }
        match self.slots.pop_front() {
            Some(Slot::Done(answer)) => {
                self.done_bytes -= answer.length();
                Poll::Ready(answer)
            }
            Some(working) => {
                self.slots.push_front(working);
                Poll::Pending
            }
            None => Poll::Pending,
        }
    }
}

#[cfg(test)]
mod tests {
    use kohort_wire::{ApiKey, frame, messages::HeartbeatResponse};

    use super::*;

    fn response() -> Frame {
        let response = HeartbeatResponse::default();
        frame::encode_response(&response, ApiKey::Heartbeat, 0, 1).expect("it can be encoded")
    }

    #[tokio::test]
    async fn what_waits_for_an_earlier_answer_is_counted_until_its_turn() {
        let mut in_flight = InFlight::default();
        let (first, answer) = tokio::sync::oneshot::channel();
        let work = async move { answer.await.expect("it is sent") };
        in_flight.start(Box::pin(work), Reserved::default()).await;
        let send = |frame| Answer::Send(frame, Reserved::default());
        for _ in 0..3 {
            let work = std::future::ready(send(response()));
            in_flight.start(Box::pin(work), Reserved::default()).await;
        }
        let length = response().len();
        assert_eq!(in_flight.done_bytes(), 3 * length);
        first.send(send(response())).expect("it is waited for");
        for left in (0..=3).rev() {
            assert!(matches!(in_flight.next().await, Answer::Send(..)));
            assert_eq!(in_flight.done_bytes(), left * length);
        }
    }
}
