//! Why a step did not pass, in words for a person.

use std::fmt;

/// One reason, and where to read more.
#[derive(Debug)]
pub struct Failure(String);

impl Failure {
    /// A failure for this reason.
    pub fn new(what: impl Into<String>) -> Self {
        Self(what.into())
    }

    /// Says what was being done when this happened.
    pub fn during(self, what: impl fmt::Display) -> Self {
        Self(format!("{what}: {}", self.0))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self(error.to_string())
    }
}
