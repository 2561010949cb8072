//! Names of topics.

/// The topic that holds the state of groups.
pub(crate) const OFFSETS_TOPIC: &str = "__consumer_offsets";

/// The topic that tells what happened to groups.
pub(crate) const EVENTS_TOPIC: &str = "__kohort_group_events";

const LENGTH_MAX: usize = 249;

/// Topics that belong to the broker, by Kafka's list and kohort's.
pub(crate) fn is_internal(name: &str) -> bool {
    matches!(
        name,
        OFFSETS_TOPIC | EVENTS_TOPIC | "__transaction_state" | "__share_group_state"
    )
}

/// What is wrong with a topic's name, if anything is. Kafka's rules: the name is a folder's.
pub(crate) fn check(name: &str) -> Result<(), String> {
    let reason = match name {
        "" => "it is empty".to_owned(),
        "." | ".." => "it has a meaning for the file system".to_owned(),
        _ if name.len() > LENGTH_MAX => {
            format!("it has {} characters, more than {LENGTH_MAX}", name.len())
        }
        _ if !name.bytes().all(is_legal) => {
            "only ASCII letters, digits, '.', '_' and '-' are allowed".to_owned()
        }
        _ => return Ok(()),
    };
    Err(format!(
        "the topic name \"{}\" is invalid: {reason}",
        shorten(name)
    ))
}

fn is_legal(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-')
}

fn shorten(name: &str) -> &str {
    match name.char_indices().nth(LENGTH_MAX) {
        Some((end, _)) => &name[..end],
        None => name,
    }
}

/// The form in which names that differ only in '.' and '_' are the same: Kafka's metrics cannot
/// tell such topics apart, so it refuses the second one.
pub(crate) fn collision_form(name: &str) -> String {
    name.replace('.', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_kafkas_rules() {
        for name in ["a", "orders.2024_x-y", &"x".repeat(249)] {
            assert_eq!(check(name), Ok(()), "{name}");
        }
        for name in ["", ".", "..", "a b", "ü", "a/b", &"x".repeat(250)] {
            assert!(check(name).is_err(), "{name}");
        }
    }

    #[test]
    fn names_that_differ_in_dots_and_underscores_collide() {
        assert_eq!(collision_form("a.b_c"), collision_form("a_b.c"));
        assert_ne!(collision_form("a-b"), collision_form("a_b"));
    }
}
