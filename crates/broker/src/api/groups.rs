//! The group APIs: JoinGroup (11), Heartbeat (12), LeaveGroup (13), SyncGroup (14),
//! DescribeGroups (15), ListGroups (16), DeleteGroups (42), ConsumerGroupHeartbeat (68),
//! ConsumerGroupDescribe (69). What to answer is the coordinator's to say; here requests find their
//! shards, and answers their requests.

use kohort_coordinator::{Reply, Request};
use kohort_wire::{ByteString, ErrorCode, messages::*};

use super::{Call, authorized};
use crate::groups::Patience;

/// Asks the shard of one group, and makes the reply a response.
macro_rules! ask {
    ($call:ident, $group_id:expr, $request:expr, $patience:ident, $kind:ident, |$code:ident| $failed:expr) => {{
        let group_id: ByteString = $group_id;
        let asked = $call
            .node
            .groups
            .ask(
                &$call.node,
                &group_id,
                $call.caller(),
                $request,
                Patience::$patience,
            )
            .await;
        match asked {
            Ok(Reply::$kind(response)) => response,
            Ok(_) => {
                let $code = ErrorCode::UNKNOWN_SERVER_ERROR;
                $failed
            }
            Err($code) => $failed,
        }
    }};
}

pub(super) async fn join(call: Call, request: JoinGroupRequest) -> JoinGroupResponse {
    let version = call.version();
    let member_id = request.member_id.clone();
    let group_id = request.group_id.clone();
    let request = Request::JoinGroup { version, request };
    let mut response = ask!(call, group_id, request, Parked, JoinGroup, |error_code| {
        JoinGroupResponse {
            error_code,
            member_id,
            ..JoinGroupResponse::default()
        }
    });
    // No protocol is null where the version knows null, and empty before.
    let protocol = response.protocol_name.take().filter(|it| !it.is_empty());
    response.protocol_name = match protocol {
        None if version < 7 => Some(ByteString::new()),
        protocol => protocol,
    };
    response
}

pub(super) async fn sync(call: Call, request: SyncGroupRequest) -> SyncGroupResponse {
    let version = call.version();
    let group_id = request.group_id.clone();
    let request = Request::SyncGroup { version, request };
    ask!(call, group_id, request, Parked, SyncGroup, |error_code| {
        SyncGroupResponse {
            error_code,
            ..SyncGroupResponse::default()
        }
    })
}

pub(super) async fn heartbeat(call: Call, request: HeartbeatRequest) -> HeartbeatResponse {
    let group_id = request.group_id.clone();
    let request = Request::Heartbeat { request };
    ask!(call, group_id, request, Prompt, Heartbeat, |error_code| {
        HeartbeatResponse {
            error_code,
            ..HeartbeatResponse::default()
        }
    })
}

pub(super) async fn leave(call: Call, request: LeaveGroupRequest) -> LeaveGroupResponse {
    let version = call.version();
    let group_id = request.group_id.clone();
    let request = Request::LeaveGroup { version, request };
    ask!(call, group_id, request, Prompt, LeaveGroup, |error_code| {
        LeaveGroupResponse {
            error_code,
            ..LeaveGroupResponse::default()
        }
    })
}

pub(super) async fn consumer_heartbeat(
    call: Call,
    request: ConsumerGroupHeartbeatRequest,
) -> ConsumerGroupHeartbeatResponse {
    if !call.node.fixed.consumer_protocol {
        return ConsumerGroupHeartbeatResponse {
            error_code: ErrorCode::UNSUPPORTED_VERSION,
            error_message: Some("The consumer group protocol is disabled.".into()),
            ..ConsumerGroupHeartbeatResponse::default()
        };
    }
    let version = call.version();
    let group_id = request.group_id.clone();
    let request = Request::ConsumerGroupHeartbeat { version, request };
    ask!(
        call,
        group_id,
        request,
        Prompt,
        ConsumerGroupHeartbeat,
        |error_code| {
            ConsumerGroupHeartbeatResponse {
                error_code,
                ..ConsumerGroupHeartbeatResponse::default()
            }
        }
    )
}

pub(super) async fn list(call: Call, request: ListGroupsRequest) -> ListGroupsResponse {
    let request = || Request::ListGroups {
        request: request.clone(),
    };
    let replies = call
        .node
        .groups
        .ask_all(&call.node, &call.caller(), request)
        .await;
    let mut response = ListGroupsResponse::default();
    for reply in replies {
        match reply {
            Ok(Reply::ListGroups(listed)) => response.groups.extend(listed.groups),
            Ok(_) => response.error_code = ErrorCode::UNKNOWN_SERVER_ERROR,
            Err(code) => response.error_code = code,
        }
    }
    response
}

pub(super) async fn describe(call: Call, request: DescribeGroupsRequest) -> DescribeGroupsResponse {
    let version = call.version();
    let replies = call
        .node
        .groups
        .ask_many(&call.node, request.groups, &call.caller(), |groups| {
            Request::DescribeGroups { version, groups }
        })
        .await;
    let mut groups = Vec::new();
    for (group_ids, reply) in replies {
        match reply {
            Ok(Reply::DescribeGroups(described)) => groups.extend(described),
            other => groups.extend(group_ids.into_iter().map(|group_id| DescribedGroup {
                error_code: code(&other),
                group_id,
                ..DescribedGroup::default()
            })),
        }
    }
    if request.include_authorized_operations {
        for group in &mut groups {
            group.authorized_operations = authorized::GROUP;
        }
    }
    DescribeGroupsResponse {
        groups,
        ..DescribeGroupsResponse::default()
    }
}

pub(super) async fn consumer_describe(
    call: Call,
    request: ConsumerGroupDescribeRequest,
) -> ConsumerGroupDescribeResponse {
    let replies = call
        .node
        .groups
        .ask_many(&call.node, request.group_ids, &call.caller(), |groups| {
            Request::ConsumerGroupDescribe { groups }
        })
        .await;
    let mut groups = Vec::new();
    for (group_ids, reply) in replies {
        match reply {
            Ok(Reply::ConsumerGroupDescribe(described)) => groups.extend(described),
            other => groups.extend(
                group_ids
                    .into_iter()
                    .map(|group_id| DescribedConsumerGroup {
                        error_code: code(&other),
                        group_id,
                        ..DescribedConsumerGroup::default()
                    }),
            ),
        }
    }
    if request.include_authorized_operations {
        for group in &mut groups {
            group.authorized_operations = authorized::GROUP;
        }
    }
    ConsumerGroupDescribeResponse {
        groups,
        ..ConsumerGroupDescribeResponse::default()
    }
}

pub(super) async fn delete(call: Call, request: DeleteGroupsRequest) -> DeleteGroupsResponse {
    let mut group_ids = request.groups_names;
    group_ids.sort_unstable();
    group_ids.dedup();
    let replies = call
        .node
        .groups
        .ask_many(&call.node, group_ids, &call.caller(), |groups| {
            Request::DeleteGroups { groups }
        })
        .await;
    let mut results = Vec::new();
    for (group_ids, reply) in replies {
        match reply {
            Ok(Reply::DeleteGroups(deleted)) => results.extend(deleted),
            other => results.extend(group_ids.into_iter().map(|group_id| DeletableGroupResult {
                group_id,
                error_code: code(&other),
                error_message: None,
            })),
        }
    }
    DeleteGroupsResponse {
        results,
        ..DeleteGroupsResponse::default()
    }
}

fn code(reply: &Result<Reply, ErrorCode>) -> ErrorCode {
    match reply {
        Ok(_) => ErrorCode::UNKNOWN_SERVER_ERROR,
        Err(code) => *code,
    }
}
