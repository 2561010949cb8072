//! The APIs: which request asks for what, and which response answers it.

use std::fmt;

use crate::{
    codec::{Message, Versions},
    messages::*,
};

/// A request.
pub trait Request: Message {
    /// The API that it asks.
    const API_KEY: ApiKey;
    /// What answers it, in the same version.
    type Response: Message;
}

/// The number of an API is not one that kohort knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("API {0} is not known")]
pub struct UnknownApi(pub i16);

macro_rules! apis {
    ($($name:ident = $key:literal: $request:ident => $response:ident;)*) => {
        /// An API of the Kafka protocol.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(i16)]
        #[allow(missing_docs)] // Kafka's own names.
        pub enum ApiKey {
            $($name = $key,)*
        }

        impl ApiKey {
            /// Every API that kohort has messages for, in the order of their numbers.
            pub const ALL: &[ApiKey] = &[$(ApiKey::$name,)*];

            /// Kafka's name of the API.
            pub const fn name(self) -> &'static str {
                match self {
                    $(ApiKey::$name => stringify!($name),)*
                }
            }

            /// The versions of the API's messages.
            pub const fn versions(self) -> Versions {
                match self {
                    $(ApiKey::$name => <$request as Message>::VERSIONS,)*
                }
            }

            /// Whether `version` of the API is flexible (KIP-482).
            pub const fn is_flexible(self, version: i16) -> bool {
                match self {
                    $(ApiKey::$name => <$request as Message>::FLEXIBLE.contains(version),)*
                }
            }
        }

        impl TryFrom<i16> for ApiKey {
            type Error = UnknownApi;

            fn try_from(key: i16) -> Result<ApiKey, UnknownApi> {
                match key {
                    $($key => Ok(ApiKey::$name),)*
                    _ => Err(UnknownApi(key)),
                }
            }
        }

        $(
            impl Request for $request {
                const API_KEY: ApiKey = ApiKey::$name;
                type Response = $response;
            }
        )*

        /// Calls `$callback!` with `Name: Request => Response;` for every API.
        #[doc(hidden)]
        #[macro_export]
        macro_rules! for_each_api {
            ($callback:ident) => {
                $callback! { $($name: $request => $response;)* }
            };
        }
    };
}

impl ApiKey {
    /// The version of the header of a request.
    pub const fn request_header_version(self, version: i16) -> i16 {
        if self.is_flexible(version) { 2 } else { 1 }
    }

    /// The version of the header of a response. Answers to ApiVersions never have tagged fields in
    /// their header, so that a client can read the answer of a broker it knows nothing of (KIP-511).
    pub const fn response_header_version(self, version: i16) -> i16 {
        match self {
            ApiKey::ApiVersions => 0,
            _ if self.is_flexible(version) => 1,
            _ => 0,
        }
    }
}

impl fmt::Display for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

apis! {
    Produce = 0: ProduceRequest => ProduceResponse;
    Fetch = 1: FetchRequest => FetchResponse;
    ListOffsets = 2: ListOffsetsRequest => ListOffsetsResponse;
    Metadata = 3: MetadataRequest => MetadataResponse;
    OffsetCommit = 8: OffsetCommitRequest => OffsetCommitResponse;
    OffsetFetch = 9: OffsetFetchRequest => OffsetFetchResponse;
    FindCoordinator = 10: FindCoordinatorRequest => FindCoordinatorResponse;
    JoinGroup = 11: JoinGroupRequest => JoinGroupResponse;
    Heartbeat = 12: HeartbeatRequest => HeartbeatResponse;
    LeaveGroup = 13: LeaveGroupRequest => LeaveGroupResponse;
    SyncGroup = 14: SyncGroupRequest => SyncGroupResponse;
    DescribeGroups = 15: DescribeGroupsRequest => DescribeGroupsResponse;
    ListGroups = 16: ListGroupsRequest => ListGroupsResponse;
    SaslHandshake = 17: SaslHandshakeRequest => SaslHandshakeResponse;
    ApiVersions = 18: ApiVersionsRequest => ApiVersionsResponse;
    CreateTopics = 19: CreateTopicsRequest => CreateTopicsResponse;
    DeleteTopics = 20: DeleteTopicsRequest => DeleteTopicsResponse;
    DeleteRecords = 21: DeleteRecordsRequest => DeleteRecordsResponse;
    InitProducerId = 22: InitProducerIdRequest => InitProducerIdResponse;
    OffsetForLeaderEpoch = 23: OffsetForLeaderEpochRequest => OffsetForLeaderEpochResponse;
    AddPartitionsToTxn = 24: AddPartitionsToTxnRequest => AddPartitionsToTxnResponse;
    AddOffsetsToTxn = 25: AddOffsetsToTxnRequest => AddOffsetsToTxnResponse;
    EndTxn = 26: EndTxnRequest => EndTxnResponse;
    TxnOffsetCommit = 28: TxnOffsetCommitRequest => TxnOffsetCommitResponse;
    DescribeConfigs = 32: DescribeConfigsRequest => DescribeConfigsResponse;
    AlterConfigs = 33: AlterConfigsRequest => AlterConfigsResponse;
    DescribeLogDirs = 35: DescribeLogDirsRequest => DescribeLogDirsResponse;
    SaslAuthenticate = 36: SaslAuthenticateRequest => SaslAuthenticateResponse;
    CreatePartitions = 37: CreatePartitionsRequest => CreatePartitionsResponse;
    DeleteGroups = 42: DeleteGroupsRequest => DeleteGroupsResponse;
    IncrementalAlterConfigs = 44: IncrementalAlterConfigsRequest => IncrementalAlterConfigsResponse;
    OffsetDelete = 47: OffsetDeleteRequest => OffsetDeleteResponse;
    DescribeCluster = 60: DescribeClusterRequest => DescribeClusterResponse;
    DescribeProducers = 61: DescribeProducersRequest => DescribeProducersResponse;
    DescribeTransactions = 65: DescribeTransactionsRequest => DescribeTransactionsResponse;
    ListTransactions = 66: ListTransactionsRequest => ListTransactionsResponse;
    ConsumerGroupHeartbeat = 68: ConsumerGroupHeartbeatRequest => ConsumerGroupHeartbeatResponse;
    ConsumerGroupDescribe = 69: ConsumerGroupDescribeRequest => ConsumerGroupDescribeResponse;
    ListConfigResources = 74: ListConfigResourcesRequest => ListConfigResourcesResponse;
    DescribeTopicPartitions = 75: DescribeTopicPartitionsRequest => DescribeTopicPartitionsResponse;

}
