//! Which APIs are served, in which versions, and by whom.

use kohort_wire::{
    ApiKey,
    codec::{Decoder, Versions},
    messages::*,
};

use super::{Call, Work, run};

macro_rules! table {
    ($($name:ident $first:literal..=$last:literal $request:ident => $($handler:ident)::+;)*) => {
        /// The APIs that are served, in the order of their numbers.
        pub(super) const SERVED: &[(ApiKey, Versions)] =
            &[$((ApiKey::$name, Versions::new($first, $last)),)*];

        /// Hands a request to its API.
        pub(super) fn dispatch(api: ApiKey, call: Call, input: Decoder) -> Work {
            match api {
                $(ApiKey::$name => run::<$request, _, _>(call, input, super::$($handler)::+),)*
                _ => super::close(format!("API {api} is not served")),
            }
        }
    };
}

table! {
    Produce 3..=13 ProduceRequest => produce::handle;
    Fetch 4..=18 FetchRequest => fetch::handle;
    ListOffsets 1..=11 ListOffsetsRequest => list_offsets::handle;
    Metadata 0..=13 MetadataRequest => metadata::handle;
    OffsetCommit 2..=10 OffsetCommitRequest => offsets::commit;
    OffsetFetch 1..=10 OffsetFetchRequest => offsets::fetch;
    FindCoordinator 0..=6 FindCoordinatorRequest => find_coordinator::handle;
    JoinGroup 0..=9 JoinGroupRequest => groups::join;
    Heartbeat 0..=4 HeartbeatRequest => groups::heartbeat;
    LeaveGroup 0..=5 LeaveGroupRequest => groups::leave;
    SyncGroup 0..=5 SyncGroupRequest => groups::sync;
    DescribeGroups 0..=6 DescribeGroupsRequest => groups::describe;
    ListGroups 0..=5 ListGroupsRequest => groups::list;
    ApiVersions 0..=5 ApiVersionsRequest => api_versions::handle;
    CreateTopics 2..=7 CreateTopicsRequest => create_topics::handle;
    DeleteTopics 1..=6 DeleteTopicsRequest => delete_topics::handle;
    DeleteRecords 0..=2 DeleteRecordsRequest => delete_records::handle;
    InitProducerId 0..=5 InitProducerIdRequest => init_producer_id::handle;
    OffsetForLeaderEpoch 2..=4 OffsetForLeaderEpochRequest => offset_for_leader_epoch::handle;
    DescribeConfigs 1..=4 DescribeConfigsRequest => describe_configs::handle;
    AlterConfigs 0..=2 AlterConfigsRequest => alter_configs::replace;
    DescribeLogDirs 1..=5 DescribeLogDirsRequest => describe_log_dirs::handle;
    CreatePartitions 0..=3 CreatePartitionsRequest => create_partitions::handle;
    DeleteGroups 0..=3 DeleteGroupsRequest => groups::delete;
    IncrementalAlterConfigs 0..=1 IncrementalAlterConfigsRequest => alter_configs::change;
    OffsetDelete 0..=0 OffsetDeleteRequest => offsets::delete;
    DescribeCluster 0..=2 DescribeClusterRequest => describe_cluster::handle;
    DescribeProducers 0..=0 DescribeProducersRequest => describe_producers::handle;
    ConsumerGroupHeartbeat 0..=1 ConsumerGroupHeartbeatRequest => groups::consumer_heartbeat;
    ConsumerGroupDescribe 0..=1 ConsumerGroupDescribeRequest => groups::consumer_describe;
    ListConfigResources 0..=1 ListConfigResourcesRequest => config_resources::handle;
    DescribeTopicPartitions 0..=0 DescribeTopicPartitionsRequest => describe_topic_partitions::handle;
}

/// The versions of an API that are served.
pub(super) fn served(api: ApiKey) -> Option<Versions> {
    SERVED
        .iter()
        .find(|(key, _)| *key == api)
        .map(|(_, versions)| *versions)
}
