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
}

impl InFlight {
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Starts work and runs it as far as it gets, so that the next request finds done what this one
    /// does at once (an append, a place in a queue).
    pub(super) async fn start(&mut self, mut work: Work, reserved: Reserved) {
        let polled = std::future::poll_fn(|cx| Poll::Ready(work.as_mut().poll(cx))).await;
        self.slots.push_back(match polled {
            Poll::Ready(answer) => Slot::Done(answer),
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
                *slot = Slot::Done(answer);
            }
        }
        match self.slots.pop_front() {
            Some(Slot::Done(answer)) => Poll::Ready(answer),
            Some(working) => {
                self.slots.push_front(working);
                Poll::Pending
            }
            None => Poll::Pending,
        }
    }
}
