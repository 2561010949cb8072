//! ConsumerGroupRegularExpression.

use crate::ByteString;

crate::message! {
    /// Key of type 16: a pattern that members of a group are subscribed to.
    pub struct ConsumerGroupRegularExpressionKey: 0..=0 {
        group_id: ByteString [0..=0],
        regular_expression: ByteString [0..=0],
    }

    /// The topics that match a pattern.
    pub struct ConsumerGroupRegularExpressionValue: 0..=0, flexible 0.. {
        topics: Vec<ByteString> [0..],
        /// The version of the cluster's metadata that the pattern was resolved against.
        version: i64 [0..],
        /// When that was, in milliseconds since 1970.
        timestamp: i64 [0..],
    }
}
