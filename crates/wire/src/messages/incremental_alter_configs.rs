//! IncrementalAlterConfigs (API 44).

use crate::{ByteString, ErrorCode};

crate::message! {
    /// Changes single options of resources, and leaves the others (KIP-339).
    pub struct IncrementalAlterConfigsRequest: 0..=1, flexible 1.. {
        resources: Vec<IncrementalAlterConfigsResource> [0..],
        /// Checks the change and does not make it.
        validate_only: bool [0..],
    }

    /// The changes to a resource.
    pub struct IncrementalAlterConfigsResource {
        /// The kind of resource; see [the list](crate::messages#kinds-of-resources).
        resource_type: i8 [0..],
        /// The topic's or group's name, or the broker's id in decimal; empty for the default of all
        /// brokers.
        resource_name: ByteString [0..],
        configs: Vec<IncrementalAlterableConfig> [0..],
    }

    /// A change of an option.
    pub struct IncrementalAlterableConfig {
        name: ByteString [0..],
        /// 0 sets the value, 1 removes the option, 2 and 3 add to a list and take from it.
        config_operation: i8 [0..],
        /// `None` when the option is removed.
        value: Option<ByteString> [0.., null 0..] = Some(Default::default()),
    }

    /// What became of each resource.
    pub struct IncrementalAlterConfigsResponse: 0..=1, flexible 1.. {
        throttle_time_ms: i32 [0..],
        responses: Vec<IncrementalAlterConfigsResourceResponse> [0..],
    }

    /// What became of a resource.
    pub struct IncrementalAlterConfigsResourceResponse {
        error_code: ErrorCode [0..],
        error_message: Option<ByteString> [0.., null 0..] = Some(Default::default()),
        /// As in the request.
        resource_type: i8 [0..],
        resource_name: ByteString [0..],
    }
}
