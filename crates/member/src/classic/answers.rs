//! What answers mean.

use kohort_wire::{ErrorCode, messages::*};

use super::{
    super::{
        Action, Answer, MemberError, Millis, RequestId,
        action::{REFUSED_RETRY_MS, after},
    },
    ClassicMember, ClassicState,
};

/// How long to wait before joining again when the group is about to rebalance.
const REJOIN_MS: Millis = 100;

impl ClassicMember {
    /// See [`Member::answered`](super::super::Member::answered).
    pub fn answered(&mut self, id: RequestId, answer: Answer, now: Millis) {
        if self.heartbeat == Some(id) {
            self.heartbeat = None;
            if let Answer::Heartbeat(answer) = answer {
                self.heartbeat_answered(answer.error_code, now);
            }
        } else if self.request == Some(id) {
            self.request = None;
            match answer {
                Answer::Join(answer) => self.join_answered(answer, now),
                Answer::Sync(answer) => self.sync_answered(&answer, now),
                // Whatever it says: the session would end anyway.
                Answer::Leave(answer) => match answer.error_code {
                    code if code.is_retriable() => {
                        self.not_before = after(now, self.backoff.next());
                    }
                    _ => self.has_left(now),
                },
                _ => {}
            }
        }
    }

    fn heartbeat_answered(&mut self, code: ErrorCode, now: Millis) {
        match code {
            ErrorCode::NONE => self.backoff.reset(),
            ErrorCode::REBALANCE_IN_PROGRESS => match self.state {
                ClassicState::Stable | ClassicState::Completing => {
                    self.rejoin = true;
                    self.go_on(now);
                }
                // It is taking part already, or leaves.
                _ => {}
            },
            ErrorCode::UNKNOWN_MEMBER_ID | ErrorCode::ILLEGAL_GENERATION => match self.state {
                ClassicState::PrepareLeaving => {
                    self.lose_all();
                    self.reset();
                    self.member_id = kohort_wire::ByteString::new();
                    self.go_on(now);
                }
                _ => self.forgotten(code, now),
            },
            // The next one asks another coordinator.
            code if code.is_retriable() => {
                self.next_heartbeat = Some(after(now, self.backoff.next()));
            }
            code if self.may_be_undone(code) => {
                self.report(code);
                self.next_heartbeat = Some(after(now, REFUSED_RETRY_MS));
            }
            code => self.refuse(code),
        }
    }

    fn join_answered(&mut self, answer: JoinGroupResponse, now: Millis) {
        match answer.error_code {
            ErrorCode::NONE => {
                self.backoff.reset();
                self.joined(answer, now);
            }
            ErrorCode::MEMBER_ID_REQUIRED => {
                self.member_id = kohort_wire::ByteString::from(&*answer.member_id);
                self.join();
            }
            code @ (ErrorCode::UNKNOWN_MEMBER_ID | ErrorCode::ILLEGAL_GENERATION) => {
                self.forgotten(code, now);
            }
            ErrorCode::REBALANCE_IN_PROGRESS => self.again_later(now + REJOIN_MS, now),
            code => self.refused_to_join(code, now),
        }
    }

    fn sync_answered(&mut self, answer: &SyncGroupResponse, now: Millis) {
        match answer.error_code {
            ErrorCode::NONE => {
                self.was_admitted = true;
                self.synced(answer, now);
            }
            ErrorCode::REBALANCE_IN_PROGRESS => self.join_again(now),
            code @ (ErrorCode::UNKNOWN_MEMBER_ID | ErrorCode::ILLEGAL_GENERATION) => {
                self.forgotten(code, now);
            }
            code => self.refused_to_join(code, now),
        }
    }

    fn refused_to_join(&mut self, code: ErrorCode, now: Millis) {
        if code.is_retriable() {
            let wait = self.backoff.next();
            self.again_later(after(now, wait), now);
        } else if self.may_be_undone(code) {
            self.report(code);
            self.again_later(after(now, REFUSED_RETRY_MS), now);
        } else {
            self.refuse(code);
        }
    }

    /// Whether this refuses what was allowed before: an administrator may allow it again.
    fn may_be_undone(&self, code: ErrorCode) -> bool {
        self.was_admitted && code == ErrorCode::GROUP_AUTHORIZATION_FAILED
    }

    fn report(&mut self, code: ErrorCode) {
        let message = None;
        self.actions
            .push(Action::Report(MemberError::Refused { code, message }));
    }

    fn again_later(&mut self, not_before: Millis, now: Millis) {
        self.not_before = not_before;
        self.join_again(now);
    }

    fn refuse(&mut self, code: ErrorCode) {
        self.fatal(MemberError::Refused {
            code,
            message: None,
        });
    }

    /// See [`Member::failed`](super::super::Member::failed).
    pub fn failed(&mut self, id: RequestId, retry_ms: Millis, now: Millis) {
        if self.heartbeat == Some(id) {
            self.heartbeat = None;
            if self.is_known() {
                self.next_heartbeat = Some(now + retry_ms);
            }
        } else if self.request == Some(id) {
            self.request = None;
            match self.state {
                ClassicState::Leaving => self.not_before = now + retry_ms,
                _ => self.again_later(now + retry_ms, now),
            }
        }
    }
}
