//! What happened last, in words: only in a run that is told, since words take time.

use std::collections::VecDeque;

use kohort_member::Millis;

/// How long a line may be.
const WIDTH: usize = 700;

/// What happened last.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    lines: VecDeque<String>,
    /// How many lines are kept.
    limit: usize,
}

impl Trace {
    pub(crate) fn new(limit: usize) -> Trace {
        let lines = VecDeque::new();
        Trace { lines, limit }
    }

    pub(crate) fn note(&mut self, now: Millis, words: impl FnOnce() -> String) {
        if self.limit == 0 {
            return;
        }
        if self.lines.len() == self.limit {
            self.lines.pop_front();
        }
        let mut line = format!("{:>9.3} {}", now as f64 / 1000.0, words());
        if line.len() > WIDTH {
            let cut = line.floor_char_boundary(WIDTH);
            line.truncate(cut);
            line.push('…');
        }
        self.lines.push_back(line);
    }

    pub(crate) fn is_on(&self) -> bool {
        self.limit > 0
    }

    pub(crate) fn into_lines(self) -> Vec<String> {
        self.lines.into()
    }
}
