//! Members whose connection has closed.
//!
//! A process that is killed cannot leave its group, but its connections close, which is news that
//! need not wait for the end of the session. A dynamic member that does not come back soon is given
//! up. Static members keep their session: coming back later is what they are for.

use super::{sessions::end_session_at, step::ConsumerStep};
use crate::{Caller, Connection, Id, Millis, Outbox, Request, Shard, step::Step};

impl Shard {
    /// Takes the news that a connection has closed, and which members have sent heartbeats over it,
    /// each with its group. Ids that were given out over it for first joins the shard knows itself.
    pub fn connection_closed(
        &mut self,
        connection: Connection,
        members: &[(Id, Id)],
        now: Millis,
        out: &mut Outbox,
    ) {
        let step = &mut self.step(now, out);
        self.forget_handed_out_over(connection, step);
        for (group_id, member_id) in members {
            if let Some(mut consumer) = self.consumer_step(group_id, step) {
                consumer.cut_session(member_id, connection);
            }
        }
    }

    /// A member that commits or fetches offsets is alive, whichever connection it uses.
    pub(crate) fn note_sign_of_life(&mut self, request: &Request, step: &mut Step<'_>) {
        let (group_id, member_id) = match request {
            Request::OffsetCommit { request, .. } => (&request.group_id, Some(&request.member_id)),
            Request::OffsetFetch { request, .. } => (&request.group_id, request.member_id.as_ref()),
            _ => return,
        };
        if let Some(member_id) = member_id
            && let Some(mut consumer) = self.consumer_step(group_id, step)
        {
            consumer.restore_session(member_id);
        }
    }
}

impl ConsumerStep<'_, '_> {
    /// Notes that the member has sent a heartbeat.
    pub(super) fn heard_from(&mut self, member_id: &Id, caller: &Caller) {
        if let Some(member) = self.group.member_mut(member_id) {
            member.connection = caller.connection;
        }
        self.restart_session(member_id);
    }

    /// Gives the member less time, if that was the connection of its last heartbeat.
    fn cut_session(&mut self, member_id: &Id, connection: Connection) {
        let grace_ms = self.connection_grace_ms();
        let now = self.step.now;
        let Some(member) = self.group.member_mut(member_id) else {
            return;
        };
        if member.connection != Some(connection) {
            return;
        }
        member.connection = None;
        let session_at = member.session.at();
        let at = now + grace_ms;
        if grace_ms == 0 || member.is_classic() || member.is_static() || at >= session_at {
            return;
        }
        member.session_was = Some(session_at);
        end_session_at(member, at, self.id, self.alarms);
    }

    /// Gives the member the time that it had before its connection closed.
    fn restore_session(&mut self, member_id: &str) {
        if let Some(member) = self.group.member_mut(member_id)
            && let Some(session_at) = member.session_was.take()
        {
            end_session_at(member, session_at, self.id, self.alarms);
        }
    }

    /// How long a member may take to come back; 0 for the whole session. One that is silent between
    /// two heartbeats does not know yet that its connection has closed.
    pub(super) fn connection_grace_ms(&self) -> Millis {
        match self.config.consumer_connection_grace_ms(self.id) {
            0 => 0,
            grace_ms => {
                let longest_ms = self.config.consumer_heartbeat_bounds(self.id).longest_ms();
                Millis::from(grace_ms).max(2 * Millis::from(longest_ms))
            }
        }
    }
}
