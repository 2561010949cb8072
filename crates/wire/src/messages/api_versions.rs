//! ApiVersions (API 18).

use crate::{ByteString, ErrorCode};

crate::message! {
    pub struct ApiVersionsRequest: 0..=5, flexible 3.. {
        client_software_name: ByteString [3.., ignorable],
        client_software_version: ByteString [3.., ignorable],
        cluster_id: Option<ByteString> [5.., null 5.., ignorable],
        node_id: i32 [5.., ignorable] = -1,
    }

    pub struct ApiVersionsResponse: 0..=5, flexible 3.. {
        error_code: ErrorCode [0..],
        api_keys: Vec<ApiVersion> [0..],
        throttle_time_ms: i32 [1.., ignorable],
        supported_features: Vec<SupportedFeatureKey> [3.., tag 0, ignorable],
        finalized_features_epoch: i64 [3.., tag 1, ignorable] = -1,
        finalized_features: Vec<FinalizedFeatureKey> [3.., tag 2, ignorable],
        zk_migration_ready: bool [3.., tag 3, ignorable],
    }

    pub struct ApiVersion {
        api_key: i16 [0..],
        min_version: i16 [0..],
        max_version: i16 [0..],
    }

    pub struct SupportedFeatureKey {
        name: ByteString [3..],
        min_version: i16 [3..],
        max_version: i16 [3..],
    }

    pub struct FinalizedFeatureKey {
        name: ByteString [3..],
        max_version_level: i16 [3..],
        min_version_level: i16 [3..],
    }
}
