//! The lines of the log, for tests that look at them.

use std::io::{self, Write};

use tokio::sync::mpsc;

/// Where the lines of the log go, as they come.
pub(crate) struct Lines(pub(crate) mpsc::UnboundedSender<String>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _ = self.0.send(String::from_utf8_lossy(bytes).into_owned());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
