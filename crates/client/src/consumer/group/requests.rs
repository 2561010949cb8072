//! Sends what the member wants sent.

use std::time::Duration;

use futures_util::future::BoxFuture;
use kohort_member::{Answer, Member, MemberRequest, RequestId};
use kohort_wire::{
    ErrorCode, Request,
    codec::Versions,
    messages::{ConsumerGroupHeartbeatRequest, LeaveGroupRequest},
};

use super::{Event, GroupTask};
use crate::{
    ByteString, Error, Result,
    rpc::{Cluster, Destination, Lane},
};

impl GroupTask {
    pub(super) fn send(&mut self, id: RequestId, request: MemberRequest) {
        let cluster = self.shared.cluster.clone();
        let to = self.group.clone();
        let timeout = cluster.config().request_timeout;
        // The coordinator answers once the last member has released its partitions.
        let patience = timeout.max(self.shared.config.poll_interval_max) + Duration::from_secs(5);
        let answer: BoxFuture<'static, Result<Answer>> = match request {
            MemberRequest::ConsumerHeartbeat(request) => {
                let regex = &request.subscribed_topic_regex;
                let needs_regex = regex.as_ref().is_some_and(|regex| !regex.is_empty());
                let versions = Versions::new(i16::from(needs_regex), i16::MAX);
                Box::pin(async move {
                    let to = (&to, Lane::Group, versions);
                    let heartbeat = |version| heartbeat(request, version);
                    ask(&cluster, to, timeout, heartbeat)
                        .await
                        .map(Answer::ConsumerHeartbeat)
                })
            }
            MemberRequest::Join(request) => Box::pin(async move {
                let to = (&to, Lane::Join, any());
                ask(&cluster, to, patience, |_| request)
                    .await
                    .map(Answer::Join)
            }),
            MemberRequest::Sync(request) => Box::pin(async move {
                let to = (&to, Lane::Join, any());
                ask(&cluster, to, patience, |_| request)
                    .await
                    .map(Answer::Sync)
            }),
            MemberRequest::Heartbeat(request) => Box::pin(async move {
                let to = (&to, Lane::Group, any());
                ask(&cluster, to, timeout, |_| request)
                    .await
                    .map(Answer::Heartbeat)
            }),
            MemberRequest::Leave(request) => Box::pin(async move {
                let to = (&to, Lane::Group, any());
                let leave = |version| leave(request, version);
                ask(&cluster, to, timeout, leave).await.map(Answer::Leave)
            }),
        };
        let (life, to) = (self.life, self.group.clone());
        self.events.push(Box::pin(async move {
            Event::Answered(life, id, to, answer.await)
        }));
    }
}

impl GroupTask {
    /// A member that has given up says so, once: others would have to wait for its partitions until
    /// its session ends, and so would the member that comes after it here.
    pub(super) fn resign(&mut self) {
        let Member::Consumer(member) = &self.member else {
            return;
        };
        let instance_id = self.shared.config.group_instance_id.clone();
        let request = ConsumerGroupHeartbeatRequest {
            group_id: self.shared.config.group_id.clone().unwrap_or_default(),
            member_id: member.member_id().clone(),
            member_epoch: if instance_id.is_some() { -2 } else { -1 },
            instance_id,
            ..Default::default()
        };
        let (cluster, to) = (self.shared.cluster.clone(), self.group.clone());
        let timeout = cluster.config().request_timeout;
        self.events.push(Box::pin(async move {
            let to = (&to, Lane::Group, any());
            if let Err(error) = ask(&cluster, to, timeout, |_| request).await {
                tracing::debug!(%error, "the coordinator does not know that the member is gone");
            }
            Event::Resigned
        }));
    }
}

fn any() -> Versions {
    Versions::new(0, i16::MAX)
}

/// Version 0 knows no regular expressions, so there is none to take back either.
fn heartbeat(
    mut request: ConsumerGroupHeartbeatRequest,
    version: i16,
) -> ConsumerGroupHeartbeatRequest {
    if version < 1 {
        request.subscribed_topic_regex = None;
    }
    request
}

/// Before version 3 only one member could leave.
fn leave(mut request: LeaveGroupRequest, version: i16) -> LeaveGroupRequest {
    if version < 3 {
        let member = request.members.pop();
        request.member_id = member.map(|member| member.member_id).unwrap_or_default();
        request.members.clear();
    }
    request
}

async fn ask<R: Request>(
    cluster: &Cluster,
    (to, lane, versions): (&Destination, Lane, Versions),
    timeout: Duration,
    request: impl FnOnce(i16) -> R,
) -> Result<R::Response> {
    let connection = cluster.connection(to, lane).await?;
    let version = connection.version_of::<R>(versions)?;
    connection.call(&request(version), version, timeout).await
}

/// The code of an answer that shows the coordinator to be elsewhere.
pub(super) fn code(answer: &Answer) -> Option<ErrorCode> {
    let code = match answer {
        Answer::ConsumerHeartbeat(answer) => answer.error_code,
        Answer::Join(answer) => answer.error_code,
        Answer::Sync(answer) => answer.error_code,
        Answer::Heartbeat(answer) => answer.error_code,
        Answer::Leave(answer) => answer.error_code,
    };
    let moved = code == ErrorCode::NOT_COORDINATOR || code == ErrorCode::COORDINATOR_NOT_AVAILABLE;
    moved.then_some(code)
}

/// Whether a failure may pass by itself. Once the member has been in the group, that includes what
/// an upgrade or an administrator does and undoes; before, it is a mistake in the settings.
pub(super) fn may_pass(error: &Error, was_member: bool) -> bool {
    let is_undone = match error {
        Error::UnsupportedVersion { .. } => true,
        Error::Kafka { code, .. } => *code == ErrorCode::GROUP_AUTHORIZATION_FAILED,
        _ => false,
    };
    error.is_retriable() || (was_member && is_undone)
}

/// An error that trying again cannot help, in the member's words.
pub(super) fn refusal(error: &Error) -> (ErrorCode, Option<ByteString>) {
    match error {
        Error::Kafka { code, message, .. } => (*code, message.clone()),
        Error::UnsupportedVersion { .. } => (
            ErrorCode::UNSUPPORTED_VERSION,
            Some(error.to_string().into()),
        ),
        error => (
            ErrorCode::UNKNOWN_SERVER_ERROR,
            Some(error.to_string().into()),
        ),
    }
}
