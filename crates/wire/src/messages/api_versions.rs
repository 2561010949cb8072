//! ApiVersions (API 18).

use crate::{ByteString, ErrorCode};

crate::message! {
    /// Asks which APIs a broker has, in which versions; the first request on most connections. A
    /// broker that does not know its version answers in version 0 with `UNSUPPORTED_VERSION`
    /// (KIP-511).
    pub struct ApiVersionsRequest: 0..=5, flexible 3.. {
        /// The client library's name: letters, digits, `.` and `-`.
        client_software_name: ByteString [3.., ignorable],
        /// The client library's version, in the same alphabet.
        client_software_version: ByteString [3.., ignorable],
        /// The cluster the client believes it talks to; `None` when it does not know. A broker of
        /// another cluster refuses.
        cluster_id: Option<ByteString> [5.., null 5.., ignorable],
        /// The broker the client believes it talks to; -1 when it does not know.
        node_id: i32 [5.., ignorable] = -1,
    }

    /// The APIs of a broker. Its header never has tagged fields, whatever the version.
    pub struct ApiVersionsResponse: 0..=5, flexible 3.. {
        error_code: ErrorCode [0..],
        api_keys: Vec<ApiVersion> [0..],
        throttle_time_ms: i32 [1.., ignorable],
        /// Cluster features that this broker could take part in (KIP-584).
        supported_features: Vec<SupportedFeatureKey> [3.., tag 0, ignorable],
        /// Grows whenever the finalized features change; -1 when not known.
        finalized_features_epoch: i64 [3.., tag 1, ignorable] = -1,
        /// Cluster features as they are in force.
        finalized_features: Vec<FinalizedFeatureKey> [3.., tag 2, ignorable],
        /// Whether a KRaft controller is ready to take over from ZooKeeper; of no use any more.
        zk_migration_ready: bool [3.., tag 3, ignorable],
    }

    /// The range of an API's versions, both ends included.
    pub struct ApiVersion {
        api_key: i16 [0..],
        min_version: i16 [0..],
        max_version: i16 [0..],
    }

    /// The range of a feature's levels that a broker knows.
    pub struct SupportedFeatureKey {
        name: ByteString [3..],
        min_version: i16 [3..],
        max_version: i16 [3..],
    }

    /// The range of a feature's levels that is in force.
    pub struct FinalizedFeatureKey {
        name: ByteString [3..],
        max_version_level: i16 [3..],
        min_version_level: i16 [3..],
    }
}
