//! What is known to end otherwise than by passing: `interop/suites/<project>.toml`.

use std::path::Path;

use serde::Deserialize;

use super::{Ending, Tested};
use crate::broker::BrokerKind;
use crate::failure::Failure;

/// One project's file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Expectations {
    /// Of the package that the suite comes in.
    pub(super) version: String,
    /// The tests of a run that is not full, in the suite's own words.
    pub(super) selection: Vec<String>,
    #[serde(default)]
    difference: Vec<Difference>,
    #[serde(default)]
    split: Vec<Split>,
}

/// A test that is run in parts, since it would end with the first part that fails.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Split {
    test: String,
    parts: Vec<String>,
}

/// Tests that do not simply pass, for one reason.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Difference {
    tests: Vec<String>,
    /// With which group protocols; all, if none is named.
    #[serde(default)]
    protocols: Vec<String>,
    expect: Expected,
    pub(super) reason: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Expected {
    /// It fails.
    Failed,
    /// It skips itself.
    Skipped,
    /// Which of the two depends on what the machine has.
    PassedOrSkipped,
    /// It passes or fails by a race of its own making: it is tried a few times, and neither is news.
    Unsteady,
    /// It is left out.
    NotRun,
}

/// How often a test is run until it passes, if need be.
const TRIES: usize = 2;

/// How often an unsteady one is.
const UNSTEADY_TRIES: usize = 5;

impl Expectations {
    pub(super) fn read(sources: &Path, project: &str) -> Result<Self, Failure> {
        let file = sources.join("suites").join(format!("{project}.toml"));
        Self::parse(&std::fs::read_to_string(&file)?)
            .map_err(|failure| failure.during(file.display()))
    }

    pub(super) fn parse(text: &str) -> Result<Self, Failure> {
        toml::from_str(text).map_err(|error| Failure::new(error.to_string()))
    }

    /// The difference that names this test, if one does.
    pub(super) fn find(&self, test: &str, protocol: &str) -> Option<&Difference> {
        self.difference
            .iter()
            .find(|difference| difference.names(test, protocol))
    }

    /// Whether a test is to be run at all.
    pub(super) fn runs(&self, test: &str, protocol: &str) -> bool {
        self.find(test, protocol)
            .is_none_or(|difference| difference.expect != Expected::NotRun)
    }

    /// The tests that are left out, with the reason.
    pub(super) fn not_run(&self, protocol: &str) -> impl Iterator<Item = (&str, &Difference)> {
        self.difference
            .iter()
            .filter(|difference| difference.expect == Expected::NotRun)
            .flat_map(move |difference| {
                let tests = difference.tests.iter();
                tests.map(move |test| (test.as_str(), difference))
            })
            .filter(move |(test, difference)| difference.names(test, protocol))
    }

    /// The parts in which a test is run, or none.
    pub(super) fn parts(&self, test: &str) -> &[String] {
        let split = self.split.iter().find(|split| split.test == test);
        split.map_or(&[], |split| &split.parts)
    }

    /// How often a test may be tried until it passes.
    pub(super) fn tries(&self, test: &str, protocol: &str) -> usize {
        match self.find(test, protocol).map(|found| found.expect) {
            Some(Expected::Unsteady) => UNSTEADY_TRIES,
            Some(Expected::Failed) => 1,
            _ => TRIES,
        }
    }

    /// What a run did not do as expected, a line each. The differences are kohort's: Apache Kafka
    /// may pass what they name.
    pub(super) fn surprises(
        &self,
        protocol: &str,
        broker: BrokerKind,
        is_full: bool,
        tested: &[Tested],
    ) -> Vec<String> {
        let mut surprises = Vec::new();
        for test in tested {
            let name = &test.test;
            let expected = self.find(name, protocol).map(|found| found.expect);
            let is_expected = match (test.ending, expected) {
                (Ending::Passed, None | Some(Expected::Unsteady | Expected::PassedOrSkipped)) => {
                    true
                }
                (Ending::Passed, Some(_)) => broker != BrokerKind::Kohort,
                (Ending::Failed, expected) => {
                    matches!(expected, Some(Expected::Failed | Expected::Unsteady))
                }
                (Ending::Skipped, expected) => matches!(
                    expected,
                    Some(Expected::Skipped | Expected::PassedOrSkipped)
                ),
            };
            if !is_expected {
                let hint = match test.ending {
                    Ending::Passed => "take it out of the expected differences",
                    _ => &test.words,
                };
                surprises.push(format!("{} {name}  {hint}", test.ending.word()));
            }
        }
        if is_full {
            for difference in &self.difference {
                for name in &difference.tests {
                    let is_due =
                        difference.expect != Expected::NotRun && difference.names(name, protocol);
                    if is_due && !tested.iter().any(|test| test.test == *name) {
                        surprises.push(format!("unknown {name}  the suite has no such test"));
                    }
                }
            }
        }
        surprises
    }
}

impl Difference {
    fn names(&self, test: &str, protocol: &str) -> bool {
        let is_of_protocol =
            self.protocols.is_empty() || self.protocols.iter().any(|named| named == protocol);
        is_of_protocol && self.tests.iter().any(|named| named == test)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"
        version = "1"
        selection = []
        [[difference]]
        tests = ["fails", "also fails"]
        expect = "failed"
        reason = "not served"
        [[difference]]
        tests = ["half"]
        protocols = ["classic"]
        expect = "skipped"
        reason = "classic only"
        [[difference]]
        tests = ["race"]
        expect = "unsteady"
        reason = "a race"
        [[difference]]
        tests = ["out"]
        expect = "not-run"
        reason = "left out"
    "#;

    fn surprises(broker: BrokerKind, is_full: bool, tests: &[(&str, Ending)]) -> Vec<String> {
        let tested: Vec<Tested> = tests
            .iter()
            .map(|&(test, ending)| Tested {
                test: test.to_owned(),
                ending,
                tries: 1,
                took: None,
                words: String::new(),
            })
            .collect();
        let expectations = Expectations::parse(FILE).expect("a valid file");
        let surprises = expectations.surprises("consumer", broker, is_full, &tested);
        let name = |line: String| line.split("  ").next().unwrap_or_default().to_owned();
        surprises.into_iter().map(name).collect()
    }

    #[test]
    fn what_ends_as_expected_is_no_news() {
        let tests = [
            ("fails", Ending::Failed),
            ("other", Ending::Passed),
            ("race", Ending::Passed),
            ("race", Ending::Failed),
            ("half", Ending::Passed),
        ];
        assert!(surprises(BrokerKind::Kohort, false, &tests).is_empty());
    }

    #[test]
    fn a_test_that_starts_to_pass_is_news_too() {
        let tests = [("fails", Ending::Passed)];
        assert_eq!(
            surprises(BrokerKind::Kohort, false, &tests),
            ["passed fails"]
        );
        assert!(surprises(BrokerKind::Kafka, false, &tests).is_empty());
    }

    #[test]
    fn a_test_that_fails_or_skips_itself_without_a_reason_is_news() {
        let tests = [
            ("other", Ending::Failed),
            ("race", Ending::Skipped),
            ("half", Ending::Skipped),
        ];
        assert_eq!(
            surprises(BrokerKind::Kohort, false, &tests),
            ["FAILED other", "skipped race", "skipped half"]
        );
    }

    #[test]
    fn a_full_run_notices_tests_that_are_gone() {
        let tests = [("fails", Ending::Failed), ("race", Ending::Passed)];
        assert_eq!(
            surprises(BrokerKind::Kohort, true, &tests),
            ["unknown also fails"]
        );
    }

    #[test]
    fn what_is_left_out_is_known_with_its_reason() {
        let expectations = Expectations::parse(FILE).expect("a valid file");
        assert!(!expectations.runs("out", "classic"));
        assert!(expectations.runs("fails", "classic"));
        let reasons: Vec<&str> = expectations
            .not_run("classic")
            .map(|(_, difference)| difference.reason.as_str())
            .collect();
        assert_eq!(reasons, ["left out"]);
    }
}
