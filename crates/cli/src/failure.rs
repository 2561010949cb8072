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

/// Goes on through all of several things, and fails in the end if one of them did.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    failed: usize,
    total: usize,
}

impl Failures {
    /// Counts a result. What failed is said at once.
    pub(crate) fn take<T, E: fmt::Display>(&mut self, result: Result<T, E>) -> Option<T> {
        self.total += 1;
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                self.failed += 1;
                eprintln!("kohort: {error}");
                None
            }
        }
    }

    pub(crate) fn finish(self) -> Result<(), Failure> {
        match (self.failed, self.total) {
            (0, _) => Ok(()),
            (failed, total) => Err(Failure::new(format!("{failed} of {total} failed"))),
        }
    }
}
