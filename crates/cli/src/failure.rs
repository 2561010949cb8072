//! Why the program ends without having done what it was asked: one line.

use std::{fmt, io};

/// Why the program ends without having done what it was asked, in one line that says what to do.
#[derive(Debug)]
pub(crate) struct Failure {
    text: String,
    is_broken_pipe: bool,
}

impl Failure {
    pub(crate) fn new(text: impl Into<String>) -> Failure {
        Failure {
            text: text.into(),
            is_broken_pipe: false,
        }
    }

    /// Whether all that happened is that nobody reads our output any more.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        self.is_broken_pipe
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
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
            text: error.to_string(),
        }
    }
}

/// What failed of several things, of which the others are done nevertheless.
#[derive(Debug, Default)]
pub(crate) struct Failures(Vec<String>);

impl Failures {
    /// The value, or nothing and the error for later.
    pub(crate) fn take<T, E: fmt::Display>(&mut self, result: Result<T, E>) -> Option<T> {
        result.map_err(|error| self.0.push(error.to_string())).ok()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All that failed, a line each.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        match self.0.is_empty() {
            true => Ok(()),
            false => Err(Failure::new(self.0.join("\nkohort: "))),
        }
    }
}
