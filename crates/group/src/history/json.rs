//! Events as JSON: the values of the topic `__kohort_group_events`.
//!
//! The schema is documented in docs/history.md. It may grow by fields and by kinds of events and
//! causes; whatever else changes needs another version.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Event, What};
use crate::Millis;

/// The version of the schema.
pub const SCHEMA_VERSION: u32 = 1;

#[derive(Serialize)]
struct Written<'a> {
    version: u32,
    at: Millis,
    group: &'a str,
    #[serde(flatten)]
    what: &'a What,
    text: String,
}

#[derive(Deserialize)]
struct Read {
    version: u32,
    at: Millis,
    group: String,
    #[serde(default)]
    text: String,
}

/// Why a value is no event.
#[derive(Debug, thiserror::Error)]
#[error("not an event of a group: {0}")]
pub struct EventError(#[from] serde_json::Error);

impl Event {
    /// The event as a JSON object, with the words that it has for people in `text`.
    pub fn to_json(&self) -> Value {
        let written = Written {
            version: SCHEMA_VERSION,
            at: self.at,
            group: &self.group_id,
            what: &self.what,
            text: self.what.to_string(),
        };
        serde_json::to_value(written).unwrap_or_default()
    }

    /// Reads an event. One of a kind that is not known, or of a later version of the schema, becomes
    /// a [`What::Note`] with its words.
    pub fn from_json(json: &[u8]) -> Result<Event, EventError> {
        let value: Value = serde_json::from_slice(json)?;
        let read = Read::deserialize(&value)?;
        let known = match read.version {
            SCHEMA_VERSION => What::deserialize(&value).ok(),
            _ => None,
        };
        Ok(Event {
            at: read.at,
            group_id: read.group.into(),
            what: known.unwrap_or(What::Note { text: read.text }),
        })
    }
}
