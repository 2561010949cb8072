//! Frames out of thin air: valid bytes of any message in any version, written from its schema alone
//! and not by the encoder that is under test.

use bytes::Bytes;
use kohort_wire::codec::{
    Versions,
    schema::{FieldSchema, Kind, MessageSchema, StructSchema},
};

/// How the values of a frame are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// At random, seldom long.
    Random,
    /// Lists of some length whose elements are as small on the wire as can be.
    SmallElements,
    /// Every list has elements, nothing is null and every tagged field is there.
    Full,
}

/// Writes frames.
pub struct Generator {
    pub rng: fastrand::Rng,
    pub shape: Shape,
}

impl Generator {
    pub fn new(rng: fastrand::Rng, shape: Shape) -> Generator {
        Generator { rng, shape }
    }

    /// A frame that is exactly what an encoder writes: tags in order, and none that holds a default.
    pub fn frame(&mut self, schema: &MessageSchema, version: i16) -> Bytes {
        let flexible = schema.flexible.contains(version);
        let mut out = Vec::new();
        self.fields(&mut out, &schema.body, version, flexible, 0, false);
        out.into()
    }

    fn fields(
        &mut self,
        out: &mut Vec<u8>,
        schema: &StructSchema,
        version: i16,
        flexible: bool,
        depth: usize,
        distinct: bool,
    ) {
        for field in schema
            .fields
            .iter()
            .filter(|field| field.rule.in_order(version))
        {
            self.field(out, field, version, flexible, depth, distinct);
        }
        if !flexible {
            return;
        }
        let mut tags = Vec::new();
        for field in schema
            .fields
            .iter()
            .filter(|field| field.rule.tagged(version))
        {
            let wanted = match self.shape {
                Shape::Random => self.rng.bool(),
                Shape::SmallElements => false,
                Shape::Full => true,
            };
            if wanted {
                let mut value = Vec::new();
                self.field(&mut value, field, version, flexible, depth, true);
                tags.push((field.rule.tag.expect("a tagged field has a tag"), value));
            }
        }
        put_varint(out, tags.len() as u32);
        for (tag, value) in tags {
            put_varint(out, tag);
            put_varint(out, value.len() as u32);
            out.extend(value);
        }
    }

    /// A value that, when `distinct`, is not the field's default.
    fn field(
        &mut self,
        out: &mut Vec<u8>,
        field: &FieldSchema,
        version: i16,
        flexible: bool,
        depth: usize,
        distinct: bool,
    ) {
        let optional = field.rule.null != Versions::NONE;
        let null = field.rule.null.contains(version)
            && !(distinct && field.default == "None")
            && match self.shape {
                Shape::Random => self.rng.u8(..4) == 0,
                Shape::SmallElements => true,
                Shape::Full => false,
            };
        match (&field.kind, null) {
            // Kafka says null in two ways, see `Nullable::write_nullable_tagged`.
            (Kind::Struct(_), true) if field.rule.tagged(version) => out.push(0),
            (Kind::Struct(_), true) => out.push(-1i8 as u8),
            (Kind::Plain("string"), true) if !flexible => out.extend((-1i16).to_be_bytes()),
            (_, true) if !flexible => out.extend((-1i32).to_be_bytes()),
            (_, true) => out.push(0),
            (kind, false) => {
                if optional && matches!(kind, Kind::Struct(_)) {
                    out.push(1);
                }
                self.value(
                    out,
                    kind,
                    &field.default,
                    version,
                    flexible,
                    depth,
                    distinct,
                );
            }
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn value(
        &mut self,
        out: &mut Vec<u8>,
        kind: &Kind,
        default: &str,
        version: i16,
        flexible: bool,
        depth: usize,
        distinct: bool,
    ) {
        match kind {
            Kind::Struct(schema) => {
                self.fields(out, schema, version, flexible, depth + 1, distinct);
            }
            Kind::List(element) => {
                let count = match self.shape {
                    _ if distinct => self.rng.usize(1..3),
                    Shape::Full => self.rng.usize(1..3),
                    Shape::SmallElements if depth == 0 => self.rng.usize(0..300),
                    Shape::SmallElements => self.rng.usize(0..2),
                    Shape::Random if depth == 0 && self.rng.u8(..20) == 0 => {
                        self.rng.usize(100..200)
                    }
                    Shape::Random => self.rng.usize(0..4),
                };
                put_length(out, count, flexible);
                for _ in 0..count {
                    self.value(out, element, "", version, flexible, depth + 1, false);
                }
            }
            Kind::Plain("string") => {
                let text = self.text(distinct);
                if flexible {
                    put_varint(out, text.len() as u32 + 1);
                } else {
                    out.extend((text.len() as u16).to_be_bytes());
                }
                out.extend(text.bytes());
            }
            Kind::Plain("bytes") => {
                let length = self.length(distinct);
                put_length(out, length, flexible);
                out.extend((0..length).map(|_| self.rng.u8(..)));
            }
            Kind::Plain("bool") => {
                let default = default == "true";
                let value = if distinct { !default } else { self.rng.bool() };
                out.push(value.into());
            }
            Kind::Plain(number) => {
                let width = match *number {
                    "int8" => 1,
                    "int16" | "uint16" => 2,
                    "int32" | "uint32" => 4,
                    "int64" | "float64" => 8,
                    "uuid" => 16,
                    other => panic!("the generator does not know {other}"),
                };
                let start = out.len();
                match self.rng.u8(..4) {
                    0 => out.extend(std::iter::repeat_n(0, width)),
                    1 => out.extend(std::iter::repeat_n(0xff, width)),
                    _ => out.extend((0..width).map(|_| self.rng.u8(..))),
                }
                if distinct {
                    // No default looks like this.
                    out[start..].fill(0x55);
                }
            }
        }
    }

    fn length(&mut self, distinct: bool) -> usize {
        match self.shape {
            _ if distinct => self.rng.usize(1..8),
            Shape::SmallElements => 0,
            Shape::Full => self.rng.usize(1..16),
            // Some are long enough for lengths of two bytes, and for not being copied.
            Shape::Random => match self.rng.u8(..) {
                0 => self.rng.usize(4000..5000),
                1..8 => self.rng.usize(120..300),
                _ => self.rng.usize(0..12),
            },
        }
    }

    fn text(&mut self, distinct: bool) -> String {
        let length = self.length(distinct);
        let mut text = String::new();
        while text.len() < length {
            match self.rng.u8(..16) {
                0 => text.push('ß'),
                1 => text.push('🦀'),
                _ => text.push(self.rng.char('!'..='~')),
            }
        }
        text
    }
}

pub fn put_varint(out: &mut Vec<u8>, mut value: u32) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn put_length(out: &mut Vec<u8>, length: usize, flexible: bool) {
    if flexible {
        put_varint(out, length as u32 + 1);
    } else {
        out.extend((length as u32).to_be_bytes());
    }
}
