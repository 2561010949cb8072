//! DescribeConfigs (API 32).

use crate::{ByteString, ErrorCode};

crate::message! {
    pub struct DescribeConfigsRequest: 1..=4, flexible 4.. {
        resources: Vec<DescribeConfigsResource> [0..],
        include_synonyms: bool [1..],
        include_documentation: bool [3..],
    }

    pub struct DescribeConfigsResource {
        resource_type: i8 [0..],
        resource_name: ByteString [0..],
        configuration_keys: Option<Vec<ByteString>> [0.., null 0..] = Some(Default::default()),
    }

    pub struct DescribeConfigsResponse: 1..=4, flexible 4.. {
        throttle_time_ms: i32 [0..],
        results: Vec<DescribeConfigsResult> [0..],
    }

    pub struct DescribeConfigsResult {
        error_code: ErrorCode [0..],
        error_message: Option<ByteString> [0.., null 0..] = Some(Default::default()),
        resource_type: i8 [0..],
        resource_name: ByteString [0..],
        configs: Vec<DescribeConfigsResourceResult> [0..],
    }

    pub struct DescribeConfigsResourceResult {
        name: ByteString [0..],
        value: Option<ByteString> [0.., null 0..] = Some(Default::default()),
        read_only: bool [0..],
        config_source: i8 [1.., ignorable] = -1,
        is_sensitive: bool [0..],
        synonyms: Vec<DescribeConfigsSynonym> [1.., ignorable],
        config_type: i8 [3.., ignorable],
        documentation: Option<ByteString> [3.., null 0.., ignorable] = Some(Default::default()),
    }

    pub struct DescribeConfigsSynonym {
        name: ByteString [1..],
        value: Option<ByteString> [1.., null 0..] = Some(Default::default()),
        source: i8 [1..],
    }
}
