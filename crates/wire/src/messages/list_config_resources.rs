//! ListConfigResources (API 74).

use crate::{ByteString, ErrorCode};

crate::message! {
    /// Asks which resources have a configuration (KIP-1142). Version 0 knows only client metrics.
    pub struct ListConfigResourcesRequest: 0..=1, flexible 0.. {
        /// The kinds of resources; none for all; see [the
        /// list](crate::messages#kinds-of-resources).
        resource_types: Vec<i8> [1..],
    }

    /// The resources.
    pub struct ListConfigResourcesResponse: 0..=1, flexible 0.. {
        throttle_time_ms: i32 [0..],
        error_code: ErrorCode [0..],
        config_resources: Vec<ListedConfigResource> [0..],
    }

    /// A resource that has a configuration.
    pub struct ListedConfigResource {
        resource_name: ByteString [0..],
        /// The kind of resource; see [the list](crate::messages#kinds-of-resources).
        resource_type: i8 [1.., ignorable] = 16,
    }
}
