//! Subscriptions with regular expressions.

use std::sync::Arc;

use kohort_group::history::{Cause, Causes, clean};
use regex::{Regex, RegexBuilder};

use super::{
    records,
    step::ConsumerStep,
    work::{Task, Work},
};
use crate::{Id, Millis, Topics};

/// The least time between two resolutions of a group's expressions.
const REFRESH_INTERVAL_MIN_MS: Millis = 10_000;

/// The longest expression.
const LENGTH_MAX: usize = 16 << 10;

/// The most memory that an expression may be compiled to: it comes from a peer.
const SIZE_MAX: usize = 1 << 20;

/// What the names of kohort's own topics begin with. No expression matches them: their records tell
/// what groups do, and a group that reads all topics would read what its own reading causes. Kafka's
/// internal topics do match, as they do with Kafka: clients leave them out themselves, if they want.
const OWN_TOPICS: &str = "__kohort_";

/// How deep groups may be nested.
const NEST_MAX: u32 = 64;

/// A regular expression that matches whole names.
///
/// The syntax is that of RE2, which clients write. What RE2 knows and this engine does not: `\Q…\E`,
/// which is translated here, and `\C`, which is refused.
#[derive(Debug)]
pub(super) struct Pattern(Regex);

impl Pattern {
    pub(super) fn new(regex: &str) -> Result<Pattern, String> {
        if regex.len() > LENGTH_MAX {
            return Err(format!("it is longer than {LENGTH_MAX} bytes"));
        }
        let regex = unquote(regex);
        // Alone first: `a)|(b` is not to become an expression by being put into a group.
        compile(&regex)?;
        // On lines of their own: a comment ends with its line.
        compile(&format!("^(?:{regex}\n)$"))
            .ok()
            .filter(|_| regex.contains("(?") && regex.contains('x') && regex.contains('#'))
            .map_or_else(|| compile(&format!("^(?:{regex})$")), Ok)
            .map(Pattern)
    }

    pub(super) fn matches(&self, name: &str) -> bool {
        self.0.is_match(name)
    }
}

fn compile(regex: &str) -> Result<Regex, String> {
    let mut builder = RegexBuilder::new(regex);
    builder.size_limit(SIZE_MAX).nest_limit(NEST_MAX);
    builder.build().map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => "it is too large".to_owned(),
        error => {
            // The parser draws the expression; its last line says what is wrong.
            let text = error.to_string();
            let problem = text.lines().last().unwrap_or_default();
            problem.trim_start_matches("error: ").to_owned()
        }
    })
}

/// Everything between `\Q` and `\E` stands for itself.
fn unquote(regex: &str) -> String {
    let mut result = String::with_capacity(regex.len());
    let mut rest = regex;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        result.push_str(before);
        if let Some(quoted) = escape.strip_prefix("\\Q") {
            let (quoted, after) = quoted.split_once("\\E").unwrap_or((quoted, ""));
            result.push_str(&regex::escape(quoted));
            rest = after;
        } else {
            let length = escape.chars().take(2).map(char::len_utf8).sum();
            let (escape, after) = escape.split_at(length);
            result.push_str(escape);
            rest = after;
        }
    }
    result.push_str(rest);
    result
}

/// Expressions to be resolved, with all topics.
#[derive(Debug)]
pub(super) struct RegexTask {
    group_id: Id,
    regexes: Vec<Id>,
    topics: Arc<Topics>,
    at: Millis,
}

/// What the expressions match.
#[derive(Debug)]
pub(super) struct RegexOutcome {
    pub(super) group_id: Id,
    version: i64,
    at: Millis,
    /// Each expression with the names of topics that it matches, sorted.
    resolved: Vec<(Id, Vec<Id>)>,
}

impl RegexTask {
    pub(super) fn run(self) -> RegexOutcome {
        let topics = &self.topics;
        let resolve = |regex: Id| {
            // Whatever the log holds was valid once; now it matches nothing if it is not.
            let mut names: Vec<Id> = match Pattern::new(&regex) {
                Ok(pattern) => topics
                    .iter()
                    .filter(|topic| !topic.name.starts_with(OWN_TOPICS))
                    .filter(|topic| pattern.matches(&topic.name))
                    .map(|topic| topic.name.clone())
                    .collect(),
                Err(_) => Vec::new(),
            };
            names.sort_unstable();
            (regex, names)
        };
        RegexOutcome {
            group_id: self.group_id,
            version: topics.version(),
            at: self.at,
            resolved: self.regexes.into_iter().map(resolve).collect(),
        }
    }
}

impl ConsumerStep<'_, '_> {
    /// Has the group's expressions resolved if there are new ones or other topics than before, or
    /// the last time was long ago. All together, so that one rebalance follows and not many.
    pub(super) fn refresh_regexes(&mut self) {
        let group = &self.group;
        if group.is_resolving || group.subscriptions().regexes().len() == 0 {
            return;
        }
        let now = self.step.now;
        let last = group.all_resolved().map(|(_, resolved)| resolved.at).max();
        // One from the future was resolved before the clock was set back.
        let last = last.filter(|&at| at <= now);
        let refresh_interval_ms = i64::from(self.config.consumer_regex_refresh_interval_ms);
        let is_stale = |regex: &Id| {
            let resolved = group.resolved(regex);
            resolved.is_none_or(|resolved| resolved.version != self.topics.version())
        };
        let is_due = last.is_none_or(|last| now > last.saturating_add(refresh_interval_ms))
            || group.subscriptions().regexes().any(is_stale);
        if !is_due {
            return;
        }
        if let Some(last) = last
            && now <= last.saturating_add(REFRESH_INTERVAL_MIN_MS)
        {
            return self.look_at(last + REFRESH_INTERVAL_MIN_MS + 1);
        }
        let mut regexes: Vec<Id> = group.subscriptions().regexes().cloned().collect();
        regexes.sort_unstable();
        let task = RegexTask {
            group_id: self.id.clone(),
            regexes,
            topics: self.topics.clone(),
            at: now,
        };
        self.group.is_resolving = true;
        self.step.work(Work::new(Task::Regexes(task)));
    }

    pub(super) fn regexes_done(&mut self, outcome: RegexOutcome) {
        self.group.is_resolving = false;
        let mut changes = Causes::default();
        for (regex, mut topics) in outcome.resolved {
            if !self.group.knows_regex(&regex) {
                continue;
            }
            let before = self.group.resolved(&regex);
            let before = before.map(|resolved| resolved.topics.clone());
            if let Some(before) = &before {
                // One that was created again since is still matched, and may be assigned already.
                if outcome.version != self.topics.version() {
                    let is_there = |name: &&Id| self.topics.get(name).is_some();
                    topics.extend(before.iter().filter(is_there).cloned());
                    topics.sort_unstable();
                    topics.dedup();
                }
                // They were not there when it was resolved before.
                let names = topics.iter();
                let (look, _) = self.topics_and_group();
                look.matched(names.filter(|name| before.binary_search(name).is_err()));
            }
            let is_news = match &before {
                Some(before) => before[..] != topics[..],
                None => !topics.is_empty() || self.has_other_targets(&regex),
            };
            if is_news {
                changes.extend([Cause::RegexResolved {
                    regex: clean(&regex),
                    topics: topics.iter().cloned().collect(),
                }]);
            }
            self.emit(records::regex(
                self.id,
                &regex,
                &topics,
                outcome.version,
                outcome.at,
            ));
        }
        self.refresh_metadata((!changes.is_empty()).then_some(changes));
        // Members may have brought others meanwhile.
        self.refresh_regexes();
        self.refresh_target();
    }
}

impl ConsumerStep<'_, '_> {
    /// Whether a member that subscribes by the expression has a target with topics that it does not
    /// subscribe to: it subscribed otherwise before.
    fn has_other_targets(&self, regex: &Id) -> bool {
        let group = &self.group;
        group.sorted_members().into_iter().any(|member| {
            let targets = group.target(&member.id).into_iter();
            let mut topics = targets.flat_map(|target| target.topics());
            member.profile.regex.as_ref() == Some(regex)
                && topics.any(|(id, _)| {
                    let topic = self.topics.by_id(id);
                    topic.is_some_and(|topic| !group.is_subscribed(&member.profile, topic))
                })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(regex: &str, name: &str) -> bool {
        Pattern::new(regex).expect("valid").matches(name)
    }

    #[test]
    fn an_expression_matches_whole_names() {
        assert!(matches("foo.*", "foobar"));
        assert!(matches("foo|bar", "bar"));
        assert!(!matches("foo|bar", "bars"));
        assert!(!matches("foo", "a foo"));
        assert!(!matches("foo", "foo\n"));
        assert!(matches("a|ab", "ab"));
        assert!(matches("(?x) foo # the one", "foo"));
        assert!(!matches("(?x) foo # the one", "fool"));
    }

    #[test]
    fn quoted_parts_stand_for_themselves() {
        assert!(matches(r"\Qa.b\E.*", "a.bc"));
        assert!(!matches(r"\Qa.b\E.*", "axbc"));
        assert!(matches(r"\Qa(b", "a(b"));
        assert!(matches(r"a\\Q", r"a\Q"));
    }

    #[test]
    fn what_is_no_expression_or_too_large_is_refused() {
        for regex in ["(", "a)|(b", "[", "*", r"\C", "(a{1000}){1000}", "\\"] {
            assert!(Pattern::new(regex).is_err(), "{regex}");
        }
        assert!(Pattern::new(&"(".repeat(100_000)).is_err());
        assert!(Pattern::new(&"a".repeat(100_000)).is_err());
    }
}
