//! ConsumerGroupRegularExpression.

use crate::ByteString;

crate::message! {
    pub struct ConsumerGroupRegularExpressionKey: 0..=0 {
        group_id: ByteString [0..=0],
        regular_expression: ByteString [0..=0],
    }

    pub struct ConsumerGroupRegularExpressionValue: 0..=0, flexible 0.. {
        topics: Vec<ByteString> [0..],
        version: i64 [0..],
        timestamp: i64 [0..],
    }
}
