//! Frames as they go out.

use std::{
    collections::VecDeque,
    io::{self, IoSlice},
};

use bytes::{Buf, Bytes};
use kohort_wire::codec::Frame;
use tokio::{io::AsyncWriteExt, net::tcp::WriteHalf};
use tokio_util::sync::CancellationToken;

use super::{
    Holder, Holders, Reserved,
    progress::{ProgressDeadline, ProgressLimit},
};

/// How many pieces go into one write.
const PIECES_MAX: usize = 64;

/// Responses that wait for the peer to read.
#[derive(Debug)]
pub(super) struct FrameWriter {
    pieces: VecDeque<Bytes>,
    bytes: usize,
    /// What frames hold of the common budget, each with the number of bytes after which it is sent.
    reserved: VecDeque<(u64, Reserved)>,
    queued_total: u64,
    sent_total: u64,
    deadline: ProgressDeadline,
    holders: Holders,
    holder: Option<Holder>,
    dismissal: CancellationToken,
}

impl FrameWriter {
    pub(super) fn new(
        holders: Holders,
        dismissal: CancellationToken,
        limit: ProgressLimit,
    ) -> FrameWriter {
        FrameWriter {
            pieces: VecDeque::new(),
            bytes: 0,
            reserved: VecDeque::new(),
            queued_total: 0,
            sent_total: 0,
            deadline: ProgressDeadline::new(limit),
            holders,
            holder: None,
            dismissal,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// How many bytes wait.
    pub(super) fn queued_bytes(&self) -> usize {
        self.bytes
    }

    /// Whether the peer takes too long to read what waits for it.
    pub(super) fn is_overdue(&self) -> bool {
        !self.is_empty() && self.deadline.has_passed()
    }

    /// Nothing was written until now: the peer cannot be blamed for that.
    pub(super) fn excuse(&mut self) {
        self.deadline.restart();
    }

    pub(super) fn push(&mut self, frame: Frame, reserved: Reserved) {
        if self.is_empty() {
            self.deadline.restart();
        }
        for piece in frame.into_pieces() {
            if !piece.is_empty() {
                self.bytes += piece.len();
                self.queued_total += piece.len() as u64;
                self.pieces.push_back(piece);
            }
        }
        if reserved.bytes() > 0 {
            self.reserved.push_back((self.queued_total, reserved));
            self.note_held();
        }
    }

    /// Tells the others how much of the common memory waits for this peer.
    fn note_held(&mut self) {
        if self.reserved.is_empty() {
            self.holder = None;
            return;
        }
        let held = self
            .reserved
            .iter()
            .map(|(_, reserved)| reserved.bytes())
            .sum();
        let holder = self
            .holder
            .get_or_insert_with(|| self.holders.join(self.dismissal.clone()));
        holder.note(held);
    }

    /// Writes some of what waits. May be dropped at any time without losing anything.
    pub(super) async fn write_some(&mut self, stream: &mut WriteHalf<'_>) -> io::Result<()> {
        let mut slices = [IoSlice::new(&[]); PIECES_MAX];
        let mut count = 0;
        for (slice, piece) in slices.iter_mut().zip(&self.pieces) {
            *slice = IoSlice::new(piece);
            count += 1;
        }
        let written = stream.write_vectored(&slices[..count]).await?;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        self.advance(written);
        Ok(())
    }

    fn advance(&mut self, mut written: usize) {
        self.deadline.moved(written);
        self.bytes -= written;
        self.sent_total += written as u64;
        while let Some(piece) = self.pieces.front_mut() {
            if written < piece.len() {
                piece.advance(written);
                break;
            }
            written -= piece.len();
            self.pieces.pop_front();
        }
        while let Some((end, _)) = self.reserved.front()
            && *end <= self.sent_total
        {
            self.reserved.pop_front();
        }
        if self.holder.is_some() {
            self.note_held();
        }
        if self.pieces.is_empty() && self.pieces.capacity() > PIECES_MAX {
            self.pieces = VecDeque::new();
        }
    }
}
