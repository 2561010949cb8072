//! DescribeConfigs (API 32).

use crate::{ByteString, ErrorCode};

crate::message! {
    /// Asks for the configuration of resources.
    pub struct DescribeConfigsRequest: 1..=4, flexible 4.. {
        resources: Vec<DescribeConfigsResource> [0..],
        /// Whether the other names and values that an option could take its value from are told.
        include_synonyms: bool [1..],
        /// Whether the explanation of each option is told.
        include_documentation: bool [3..],
    }

    /// A resource.
    pub struct DescribeConfigsResource {
        /// The kind of resource; see [the list](crate::messages#kinds-of-resources).
        resource_type: i8 [0..],
        resource_name: ByteString [0..],
        /// The options that are asked for; `None` for all.
        configuration_keys: Option<Vec<ByteString>> [0.., null 0..] = Some(Default::default()),
    }

    /// The configuration of each resource.
    pub struct DescribeConfigsResponse: 1..=4, flexible 4.. {
        throttle_time_ms: i32 [0..],
        results: Vec<DescribeConfigsResult> [0..],
    }

    /// The configuration of a resource.
    pub struct DescribeConfigsResult {
        error_code: ErrorCode [0..],
        error_message: Option<ByteString> [0.., null 0..] = Some(Default::default()),
        /// As in the request.
        resource_type: i8 [0..],
        resource_name: ByteString [0..],
        configs: Vec<DescribeConfigsResourceResult> [0..],
    }

    /// An option.
    pub struct DescribeConfigsResourceResult {
        name: ByteString [0..],
        /// `None` for a sensitive option, whose value is never told.
        value: Option<ByteString> [0.., null 0..] = Some(Default::default()),
        /// Whether the option can only be set when the broker starts.
        read_only: bool [0..],
        /// Where the value comes from; see [the list](crate::messages#sources-of-options).
        config_source: i8 [1.., ignorable] = -1,
        is_sensitive: bool [0..],
        /// Where the value could come from, the strongest first.
        synonyms: Vec<DescribeConfigsSynonym> [1.., ignorable],
        /// 1 boolean, 2 string, 3 int, 4 short, 5 long, 6 double, 7 list, 8 class, 9 password; 0
        /// not known.
        config_type: i8 [3.., ignorable],
        documentation: Option<ByteString> [3.., null 0.., ignorable] = Some(Default::default()),
    }

    /// A place where an option's value could come from.
    pub struct DescribeConfigsSynonym {
        name: ByteString [1..],
        value: Option<ByteString> [1.., null 0..] = Some(Default::default()),
        /// See [the list](crate::messages#sources-of-options).
        source: i8 [1..],
    }
}
