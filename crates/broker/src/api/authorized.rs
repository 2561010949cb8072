//! What the caller may do: everything, since there is no authorizer.

/// Bits of Kafka's operations on a topic: read, write, create, delete, alter, describe, describe
/// and alter configs.
pub(super) const TOPIC: i32 = bits(&[3, 4, 5, 6, 7, 8, 10, 11]);
/// On a group: read, delete, describe, describe and alter configs.
pub(super) const GROUP: i32 = bits(&[3, 6, 8, 10, 11]);
/// On the cluster: create, alter, describe, cluster action, describe and alter configs, idempotent
/// write.
pub(super) const CLUSTER: i32 = bits(&[5, 7, 8, 9, 10, 11, 12]);

/// Nothing was asked.
pub(super) const NOT_ASKED: i32 = i32::MIN;

const fn bits(operations: &[u32]) -> i32 {
    let mut sum = 0;
    let mut index = 0;
    while index < operations.len() {
        sum |= 1 << operations[index];
        index += 1;
    }
    sum
}
