//! AlterConfigs (API 33).

use crate::{ByteString, ErrorCode};

crate::message! {
    /// Replaces the whole configuration of resources; what is not named goes back to its default.
    /// [`IncrementalAlterConfigsRequest`](crate::messages::IncrementalAlterConfigsRequest) is the
    /// better choice.
    pub struct AlterConfigsRequest: 0..=2, flexible 2.. {
        resources: Vec<AlterConfigsResource> [0..],
        /// Checks the change and does not make it.
        validate_only: bool [0..],
    }

    /// The new configuration of a resource.
    pub struct AlterConfigsResource {
        /// The kind of resource; see [the list](crate::messages#kinds-of-resources).
        resource_type: i8 [0..],
        /// The topic's or group's name, or the broker's id in decimal; empty for the default of all
        /// brokers.
        resource_name: ByteString [0..],
        configs: Vec<AlterableConfig> [0..],
    }

    /// An option and its new value.
    pub struct AlterableConfig {
        name: ByteString [0..],
        /// `None` removes the option.
        value: Option<ByteString> [0.., null 0..] = Some(Default::default()),
    }

    /// What became of each resource.
    pub struct AlterConfigsResponse: 0..=2, flexible 2.. {
        throttle_time_ms: i32 [0..],
        responses: Vec<AlterConfigsResourceResponse> [0..],
    }

    /// What became of a resource.
    pub struct AlterConfigsResourceResponse {
        error_code: ErrorCode [0..],
        error_message: Option<ByteString> [0.., null 0..] = Some(Default::default()),
        /// As in the request.
        resource_type: i8 [0..],
        resource_name: ByteString [0..],
    }
}
