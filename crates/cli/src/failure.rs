//! Why a command failed.

use std::{fmt, io};

use kohort::text::printable_line;

/// Why a command failed: what happened, to what, and what to do about it. Usually one line.
#[derive(Debug)]
pub(crate) struct Failure {
    lines: Vec<String>,
    is_broken_pipe: bool,
}

impl Failure {
    pub(crate) fn new(text: impl Into<String>) -> Failure {
        Failure {
            lines: vec![text.into()],
            is_broken_pipe: false,
        }
    }

    /// Whether the only problem is that the reader of the output has gone.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        self.is_broken_pipe
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, line) in self.lines.iter().enumerate() {
            let start = if index == 0 { "" } else { "\nkohort: " };
            // Errors contain names and messages from peers.
            write!(f, "{start}{}", printable_line(line))?;
        }
        Ok(())
    }
}

impl From<kohort::Error> for Failure {
    fn from(error: kohort::Error) -> Failure {
        Failure::new(error.to_string())
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure {
            is_broken_pipe: error.kind() == io::ErrorKind::BrokenPipe,
            lines: vec![error.to_string()],
        }
    }
}

/// The failed parts of a command that does several things; the other parts are done.
#[derive(Debug, Default)]
pub(crate) struct Failures(Vec<String>);

impl Failures {
    /// The value; an error is kept for later.
    pub(crate) fn take<T, E: fmt::Display>(&mut self, result: Result<T, E>) -> Option<T> {
        result.map_err(|error| self.add(error)).ok()
    }

    /// Keeps an error for later; the same one only once.
    pub(crate) fn add(&mut self, error: impl fmt::Display) {
        let text = error.to_string();
        if !self.0.contains(&text) {
            self.0.push(text);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Everything that failed, a line each.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(Failure {
                lines: self.0,
                is_broken_pipe: false,
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_peer_says_stays_in_its_line() {
        let failure = Failure::new("group a\nkohort: all is well\x1b[2J: unknown");
        assert_eq!(
            failure.to_string(),
            "group a\u{fffd}kohort: all is well\u{fffd}[2J: unknown"
        );
        let mut failures = Failures::default();
        failures.add("first\r");
        failures.add("second");
        let failure = failures.finish().expect_err("it failed");
        assert_eq!(failure.to_string(), "first\u{fffd}\nkohort: second");
    }
}
