//! Events in lines, the phases of a rebalance below its beginning.

use crate::coordinator::{
    Millis,
    history::{Event, What, clock_span},
};

use super::Clock;

/// Prints events one after the other.
#[derive(Debug)]
pub struct Timeline {
    clock: Clock,
    /// When the rebalance that goes on began.
    began_at: Option<Millis>,
}

impl Timeline {
    /// Nothing has been printed. `clock` writes the times.
    pub fn new(clock: Clock) -> Timeline {
        Timeline {
            clock,
            began_at: None,
        }
    }

    /// The line of the next event: with its time, or, as part of a rebalance, with how much later it
    /// is than the beginning.
    pub fn line(&mut self, event: &Event) -> String {
        let begins = matches!(event.what, What::RebalanceBegan { .. });
        let ends = matches!(
            event.what,
            What::Assigned { .. }
                | What::Stable { .. }
                | What::Emptied { .. }
                | What::Deleted { .. }
        );
        let time = (self.clock)(event.at);
        let line = match self.began_at {
            Some(began_at) => {
                let later = format!("+{}", clock_span(event.at - began_at));
                let width = time.chars().count();
                format!("{later:>width$}  {}", event.what)
            }
            None => format!("{time}  {}", event.what),
        };
        if begins {
            self.began_at.get_or_insert(event.at);
        } else if ends {
            self.began_at = None;
        }
        line
    }
}
