//! Events in lines, the phases of a rebalance below its beginning.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value;

use super::Clock;
use crate::{
    Millis,
    history::{Event, What, Who, clock_span},
    text::printable_line,
};

/// Prints events one after the other.
#[derive(Debug)]
pub struct Timeline {
    clock: Clock,
    /// When the rebalance that goes on began.
    began_at: Option<Millis>,
    /// Full names that were used, and the short names that follow; `None` if a short name would be
    /// ambiguous.
    named: HashMap<String, Option<String>>,
}

impl Timeline {
    /// Nothing has been printed. `clock` writes the times.
    pub fn new(clock: Clock) -> Timeline {
        Timeline {
            clock,
            began_at: None,
            named: HashMap::new(),
        }
    }

    /// The line of the next event: with its time, or, as part of a rebalance, with how much later it
    /// is than the beginning. A member that was named before gets its short name.
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
        let words = self.words(event);
        let line = match self.began_at {
            Some(began_at) => {
                let later = format!("+{}", clock_span(event.at - began_at));
                let width = time.chars().count();
                format!("{later:>width$}  {words}")
            }
            None => format!("{time}  {words}"),
        };
        if begins {
            self.began_at.get_or_insert(event.at);
        } else if ends {
            self.began_at = None;
        }
        // An event may come from a cluster that does not clean what its clients call themselves.
        printable_line(&line).into_owned()
    }

    fn words(&mut self, event: &Event) -> String {
        let mut words = event.what.to_string();
        let mut mentioned = Vec::new();
        collect(
            &serde_json::to_value(&event.what).unwrap_or_default(),
            &mut mentioned,
        );
        for who in mentioned {
            let full = who.to_string();
            match self.named.get(&full) {
                Some(Some(short)) => words = words.replace(&full, short),
                Some(None) => {}
                None => self.name(full, &who),
            }
        }
        words
    }

    /// From now on the short name will do, unless another goes by it.
    fn name(&mut self, full: String, who: &Who) {
        let short = who
            .instance_id
            .as_ref()
            .unwrap_or(&who.client_id)
            .to_string();
        let mut is_taken = short.is_empty();
        for known in self.named.values_mut() {
            if known.as_ref() == Some(&short) {
                *known = None;
                is_taken = true;
            }
        }
        self.named.insert(full, (!is_taken).then_some(short));
    }
}

/// Everybody whom an event mentions.
fn collect(value: &Value, mentioned: &mut Vec<Who>) {
    match value {
        Value::Object(fields) if fields.contains_key("client_id") => {
            mentioned.extend(
                Who::deserialize(value)
                    .ok()
                    .filter(|who| !who.id.is_empty()),
            );
        }
        Value::Object(fields) => fields.values().for_each(|it| collect(it, mentioned)),
        Value::Array(all) => all.iter().for_each(|it| collect(it, mentioned)),
        _ => {}
    }
}
