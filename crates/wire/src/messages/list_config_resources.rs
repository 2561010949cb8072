//! ListConfigResources (API 74).

use crate::{ByteString, ErrorCode};

crate::message! {
    pub struct ListConfigResourcesRequest: 0..=1, flexible 0.. {
        resource_types: Vec<i8> [1..],
    }

    pub struct ListConfigResourcesResponse: 0..=1, flexible 0.. {
        throttle_time_ms: i32 [0..],
        error_code: ErrorCode [0..],
        config_resources: Vec<ListedConfigResource> [0..],
    }

    pub struct ListedConfigResource {
        resource_name: ByteString [0..],
        resource_type: i8 [1.., ignorable] = 16,
    }
}
