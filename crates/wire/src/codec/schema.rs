//! What a message is made of, as data: for tests that compare it with Kafka's own schemas, and for
//! tools that print messages.

use super::{Rule, Versions};

/// A struct of a message.
#[derive(Debug, Clone, PartialEq)]
pub struct StructSchema {
    /// Its name in kohort.
    pub name: &'static str,
    /// Its fields, in the order of the wire.
    pub fields: Vec<FieldSchema>,
}

/// A field of a struct.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldSchema {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub kind: Kind,
    /// The versions that carry it.
    pub rule: Rule,
    /// The value that it has where it is not carried, as `Debug` prints it.
    pub default: String,
}

/// The type of a field.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// A number, text, byte string or the like, by Kafka's name of the type (`int32`, `string`).
    Plain(&'static str),
    /// A list.
    List(Box<Kind>),
    /// A struct.
    Struct(StructSchema),
}

/// A whole message.
#[derive(Debug, Clone, PartialEq)]
pub struct MessageSchema {
    /// The message's own struct.
    pub body: StructSchema,
    /// The versions that exist.
    pub versions: Versions,
    /// The versions that are flexible (KIP-482).
    pub flexible: Versions,
}
