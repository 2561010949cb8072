//! What answers mean.

use kohort_wire::{ErrorCode, messages::*};

use super::{
    super::{Answer, MemberError, Millis, RequestId},
    ClassicMember, ClassicState,
};

/// How long to wait before the coordinator is asked again that said it could not answer.
const RETRY_MS: Millis = 100;

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
                    code if code.is_retriable() => self.not_before = now + RETRY_MS,
                    _ => self.has_left(now),
                },
                _ => {}
            }
        }
    }

    fn heartbeat_answered(&mut self, code: ErrorCode, now: Millis) {
        match code {
            ErrorCode::NONE => {}
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
            code if code.is_retriable() => self.next_heartbeat = Some(now + RETRY_MS),
            code => self.refuse(code),
        }
    }

    fn join_answered(&mut self, answer: JoinGroupResponse, now: Millis) {
        match answer.error_code {
            ErrorCode::NONE => self.joined(answer, now),
            ErrorCode::MEMBER_ID_REQUIRED => {
                self.member_id = kohort_wire::ByteString::from(&*answer.member_id);
                self.join();
            }
            code @ (ErrorCode::UNKNOWN_MEMBER_ID | ErrorCode::ILLEGAL_GENERATION) => {
                self.forgotten(code, now);
            }
            ErrorCode::REBALANCE_IN_PROGRESS => self.again_later(now + RETRY_MS, now),
            code if code.is_retriable() => self.again_later(now + RETRY_MS, now),
            code => self.refuse(code),
        }
    }

    fn sync_answered(&mut self, answer: &SyncGroupResponse, now: Millis) {
        match answer.error_code {
            ErrorCode::NONE => self.synced(answer, now),
            ErrorCode::REBALANCE_IN_PROGRESS => self.join_again(now),
            code @ (ErrorCode::UNKNOWN_MEMBER_ID | ErrorCode::ILLEGAL_GENERATION) => {
                self.forgotten(code, now);
            }
            code if code.is_retriable() => self.again_later(now + RETRY_MS, now),
            code => self.refuse(code),
        }
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
