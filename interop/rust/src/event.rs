//! What the agent says.

use std::io::Write;

use serde_json::Value;

/// Prints one event, at once. Who cannot be heard has nobody left to work for.
pub(crate) fn emit(event: &Value) {
    let mut output = std::io::stdout().lock();
    let written = writeln!(output, "{event}").and_then(|()| output.flush());
    if let Err(error) = written {
        eprintln!("standard output: {error}");
        std::process::exit(1);
    }
}
