//! The types that fields have.

use bytes::{BufMut, Bytes};
use bytestring::ByteString;

use super::{DecodeError, Decoder, EncodeError, Encoder, Problem, schema::Kind};
use crate::{ErrorCode, Uuid};

/// A type that a field can have.
pub trait Field: Sized {
    /// The type as data.
    fn kind() -> Kind;

    /// Writes the value as `version` of the message does; `flexible` tells whether that version has
    /// compact lengths and tagged fields.
    fn write(&self, out: &mut Encoder, version: i16, flexible: bool) -> Result<(), EncodeError>;

    /// Reads a value.
    fn read(input: &mut Decoder, version: i16, flexible: bool) -> Result<Self, DecodeError>;

    /// Writes the value as that of a tagged field.
    fn write_tagged(&self, out: &mut Encoder, version: i16) -> Result<(), EncodeError> {
        self.write(out, version, true)
    }

    /// Reads the value of a tagged field.
    fn read_tagged(input: &mut Decoder, version: i16) -> Result<Self, DecodeError> {
        Self::read(input, version, true)
    }

    /// Whether the value is null.
    #[inline]
    fn is_null(&self) -> bool {
        false
    }
}

/// A type that has a null on the wire: `Option` of it is a [`Field`] too.
pub trait Nullable: Field {
    /// Writes the value, or null.
    fn write_nullable(
        value: Option<&Self>,
        out: &mut Encoder,
        version: i16,
        flexible: bool,
    ) -> Result<(), EncodeError>;

    /// Reads a value, or null.
    fn read_nullable(
        input: &mut Decoder,
        version: i16,
        flexible: bool,
    ) -> Result<Option<Self>, DecodeError>;

    /// Writes the value of a tagged field, or null. For structs Kafka has two ways to say null: a
    /// signed byte in order, a variable-length number in tagged fields.
    fn write_nullable_tagged(
        value: Option<&Self>,
        out: &mut Encoder,
        version: i16,
    ) -> Result<(), EncodeError> {
        Self::write_nullable(value, out, version, true)
    }

    /// Reads the value of a tagged field, or null.
    fn read_nullable_tagged(
        input: &mut Decoder,
        version: i16,
    ) -> Result<Option<Self>, DecodeError> {
        Self::read_nullable(input, version, true)
    }
}

impl<T: Nullable> Field for Option<T> {
    fn kind() -> Kind {
        T::kind()
    }

    fn write(&self, out: &mut Encoder, version: i16, flexible: bool) -> Result<(), EncodeError> {
        T::write_nullable(self.as_ref(), out, version, flexible)
    }

    fn read(input: &mut Decoder, version: i16, flexible: bool) -> Result<Self, DecodeError> {
        T::read_nullable(input, version, flexible)
    }

    fn write_tagged(&self, out: &mut Encoder, version: i16) -> Result<(), EncodeError> {
        T::write_nullable_tagged(self.as_ref(), out, version)
    }

    fn read_tagged(input: &mut Decoder, version: i16) -> Result<Self, DecodeError> {
        T::read_nullable_tagged(input, version)
    }

    fn is_null(&self) -> bool {
        self.is_none()
    }
}

macro_rules! fixed {
    ($($type:ty, $kafka:literal, |$out:ident, $value:ident| $write:expr, |$input:ident| $read:expr;)*) => {
        $(
            impl Field for $type {
                fn kind() -> Kind {
                    Kind::Plain($kafka)
                }

                #[inline]
                fn write(&self, out: &mut Encoder, _: i16, _: bool) -> Result<(), EncodeError> {
                    let ($out, $value) = (out.buffer(), *self);
                    $write;
                    Ok(())
                }

                #[inline]
                fn read($input: &mut Decoder, _: i16, _: bool) -> Result<Self, DecodeError> {
                    $read
                }
            }
        )*
    };
}

fixed! {
    bool, "bool", |out, value| out.put_u8(value.into()), |input| Ok(input.u8()? != 0);
    i8, "int8", |out, value| out.put_i8(value), |input| input.i8();
    i16, "int16", |out, value| out.put_i16(value), |input| input.i16();
    u16, "uint16", |out, value| out.put_u16(value), |input| input.u16();
    i32, "int32", |out, value| out.put_i32(value), |input| input.i32();
    u32, "uint32", |out, value| out.put_u32(value), |input| input.u32();
    i64, "int64", |out, value| out.put_i64(value), |input| input.i64();
    f64, "float64", |out, value| out.put_f64(value), |input| input.f64();
    Uuid, "uuid", |out, value| out.put_u128(value.0), |input| input.u128().map(Uuid);
    ErrorCode, "int16", |out, value| out.put_i16(value.0), |input| input.i16().map(ErrorCode);
}

/// [`Field`] of a type that is [`Nullable`].
macro_rules! never_null {
    () => {
        fn write(
            &self,
            out: &mut Encoder,
            version: i16,
            flexible: bool,
        ) -> Result<(), EncodeError> {
            Self::write_nullable(Some(self), out, version, flexible)
        }

        fn read(input: &mut Decoder, version: i16, flexible: bool) -> Result<Self, DecodeError> {
            Self::read_nullable(input, version, flexible)?.ok_or(DecodeError::new(Problem::Null))
        }
    };
}

impl Field for ByteString {
    fn kind() -> Kind {
        Kind::Plain("string")
    }

    never_null!();
}

impl Nullable for ByteString {
    fn write_nullable(
        value: Option<&Self>,
        out: &mut Encoder,
        _: i16,
        flexible: bool,
    ) -> Result<(), EncodeError> {
        match value {
            Some(text) => {
                out.text_length(text.len(), flexible)?;
                out.bytes(text.as_bytes());
            }
            None if flexible => out.unsigned_varint(0),
            None => out.buffer().put_i16(-1),
        }
        Ok(())
    }

    fn read_nullable(
        input: &mut Decoder,
        _: i16,
        flexible: bool,
    ) -> Result<Option<Self>, DecodeError> {
        match input.text_length(flexible)? {
            Some(length) => input.text(length).map(Some),
            None => Ok(None),
        }
    }
}

impl Field for Bytes {
    fn kind() -> Kind {
        Kind::Plain("bytes")
    }

    never_null!();
}

impl Nullable for Bytes {
    fn write_nullable(
        value: Option<&Self>,
        out: &mut Encoder,
        _: i16,
        flexible: bool,
    ) -> Result<(), EncodeError> {
        match value {
            Some(bytes) => {
                out.length(bytes.len(), flexible)?;
                out.bytes(bytes);
            }
            None => write_null(out, flexible),
        }
        Ok(())
    }

    fn read_nullable(
        input: &mut Decoder,
        _: i16,
        flexible: bool,
    ) -> Result<Option<Self>, DecodeError> {
        match input.length(flexible)? {
            Some(length) => input.take(length).map(Some),
            None => Ok(None),
        }
    }
}

impl<T: Field> Field for Vec<T> {
    fn kind() -> Kind {
        Kind::List(Box::new(T::kind()))
    }

    never_null!();
}

impl<T: Field> Nullable for Vec<T> {
    fn write_nullable(
        value: Option<&Self>,
        out: &mut Encoder,
        version: i16,
        flexible: bool,
    ) -> Result<(), EncodeError> {
        match value {
            Some(elements) => {
                out.length(elements.len(), flexible)?;
                elements
                    .iter()
                    .try_for_each(|element| element.write(out, version, flexible))
            }
            None => {
                write_null(out, flexible);
                Ok(())
            }
        }
    }

    fn read_nullable(
        input: &mut Decoder,
        version: i16,
        flexible: bool,
    ) -> Result<Option<Self>, DecodeError> {
        let Some(count) = input.length(flexible)? else {
            return Ok(None);
        };
        let mut elements = input.list(count)?;
        for _ in 0..count {
            elements.push(T::read(input, version, flexible)?);
        }
        Ok(Some(elements))
    }
}

fn write_null(out: &mut Encoder, flexible: bool) {
    if flexible {
        out.unsigned_varint(0);
    } else {
        out.buffer().put_i32(-1);
    }
}
