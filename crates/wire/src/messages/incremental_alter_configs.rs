//! IncrementalAlterConfigs (API 44).

use crate::{ByteString, ErrorCode};

crate::message! {
    pub struct IncrementalAlterConfigsRequest: 0..=1, flexible 1.. {
        resources: Vec<IncrementalAlterConfigsResource> [0..],
        validate_only: bool [0..],
    }

    pub struct IncrementalAlterConfigsResource {
        resource_type: i8 [0..],
        resource_name: ByteString [0..],
        configs: Vec<IncrementalAlterableConfig> [0..],
    }

    pub struct IncrementalAlterableConfig {
        name: ByteString [0..],
        config_operation: i8 [0..],
        value: Option<ByteString> [0.., null 0..] = Some(Default::default()),
    }

    pub struct IncrementalAlterConfigsResponse: 0..=1, flexible 1.. {
        throttle_time_ms: i32 [0..],
        responses: Vec<IncrementalAlterConfigsResourceResponse> [0..],
    }

    pub struct IncrementalAlterConfigsResourceResponse {
        error_code: ErrorCode [0..],
        error_message: Option<ByteString> [0.., null 0..] = Some(Default::default()),
        resource_type: i8 [0..],
        resource_name: ByteString [0..],
    }
}
