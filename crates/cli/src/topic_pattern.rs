//! Topics as `kohort consume` names them: names and patterns.

use regex::Regex;

use crate::failure::Failure;

/// What a member of a group subscribes to.
#[derive(Debug)]
pub(crate) enum Subscription {
    /// Topics by name.
    Names(Vec<String>),
    /// The topics whose whole name matches.
    Pattern(Regex),
}

impl Subscription {
    /// From names and from patterns, which begin with `^`. As with kcat and librdkafka, a pattern
    /// has to match the beginning of a name only: `^ord` matches `orders`.
    pub(crate) fn parse(topics: &[String]) -> Result<Subscription, Failure> {
        if !topics.iter().any(|topic| topic.starts_with('^')) {
            return Ok(Subscription::Names(topics.to_vec()));
        }
        let mut alternatives = Vec::with_capacity(topics.len());
        for topic in topics {
            alternatives.push(match topic.strip_prefix('^') {
                Some(pattern) => whole(pattern),
                None => regex::escape(topic),
            });
        }
        let all = alternatives.join("|");
        let regex = Regex::new(&all).map_err(|error| {
            // Its first lines draw a picture of the pattern.
            let text = error.to_string();
            let reason = text.lines().last().unwrap_or_default();
            let reason = reason.trim_start_matches("error: ");
            Failure::new(format!(
                "{}: not a regular expression: {reason}",
                topics.join(" ")
            ))
        })?;
        Ok(Subscription::Pattern(regex))
    }
}

/// A pattern for the beginning of a name as one for the whole name.
fn whole(pattern: &str) -> String {
    let is_escaped = || {
        let before = &pattern[..pattern.len() - 1];
        before
            .bytes()
            .rev()
            .take_while(|&byte| byte == b'\\')
            .count()
            % 2
            == 1
    };
    let (pattern, rest) = match pattern.strip_suffix('$') {
        Some(whole) if !is_escaped() => (whole, ""),
        _ => (pattern, ".*"),
    };
    match pattern.contains('|') {
        true => format!("(?:{pattern}){rest}"),
        false => format!("{pattern}{rest}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(topics: &[&str], name: &str) -> bool {
        let topics: Vec<_> = topics.iter().map(|topic| (*topic).to_owned()).collect();
        match Subscription::parse(&topics).expect("a subscription") {
            Subscription::Names(names) => names.iter().any(|it| it == name),
            // Clusters match whole names.
            Subscription::Pattern(regex) => {
                Regex::new(&format!("^(?:{})$", regex.as_str())).is_ok_and(|it| it.is_match(name))
            }
        }
    }

    #[test]
    fn a_pattern_matches_the_beginning_of_a_name() {
        for (pattern, name, expected) in [
            ("^ord", "orders", true),
            ("^ord", "lord", false),
            ("^ord$", "orders", false),
            ("^ord$", "ord", true),
            ("^a|b", "bc", true),
            ("^a|b$", "bc", false),
            ("^o.*s$", "orders", true),
            ("^.*", "anything", true),
            ("orders", "orders", true),
            ("orders", "orders-eu", false),
        ] {
            assert_eq!(matches(&[pattern], name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn names_and_patterns_go_together() {
        let topics = ["^ord", "a.b"];
        assert!(matches(&topics, "orders") && matches(&topics, "a.b"));
        assert!(!matches(&topics, "a-b") && !matches(&topics, "a.bc"));
    }

    #[test]
    fn what_is_no_pattern_is_an_error_in_one_line() {
        let error = Subscription::parse(&["^a(".to_owned()]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "^a(: not a regular expression: unclosed group"
        );
    }
}
