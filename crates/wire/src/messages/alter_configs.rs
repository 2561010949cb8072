//! AlterConfigs (API 33).

use crate::{ByteString, ErrorCode};

crate::message! {
    pub struct AlterConfigsRequest: 0..=2, flexible 2.. {
        resources: Vec<AlterConfigsResource> [0..],
        validate_only: bool [0..],
    }

    pub struct AlterConfigsResource {
        resource_type: i8 [0..],
        resource_name: ByteString [0..],
        configs: Vec<AlterableConfig> [0..],
    }

    pub struct AlterableConfig {
        name: ByteString [0..],
        value: Option<ByteString> [0.., null 0..] = Some(Default::default()),
    }

    pub struct AlterConfigsResponse: 0..=2, flexible 2.. {
        throttle_time_ms: i32 [0..],
        responses: Vec<AlterConfigsResourceResponse> [0..],
    }

    pub struct AlterConfigsResourceResponse {
        error_code: ErrorCode [0..],
        error_message: Option<ByteString> [0.., null 0..] = Some(Default::default()),
        resource_type: i8 [0..],
        resource_name: ByteString [0..],
    }
}
