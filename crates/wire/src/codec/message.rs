//! The declaration of messages.

use super::{
    DecodeError, Decoder, EncodeError, Encoder, Problem, Versions,
    schema::{MessageSchema, StructSchema},
};

/// A struct of a message.
pub trait Struct: Sized + Default {
    /// What the struct is made of.
    fn schema() -> StructSchema;

    /// How long the sender of the request should send nothing more, in ms: the field
    /// `throttle_time_ms` of responses that have it (KIP-219), otherwise 0.
    fn throttle_time_ms(&self) -> i32 {
        0
    }

    /// Writes the fields that `version` carries.
    fn write_fields(
        &self,
        out: &mut Encoder,
        version: i16,
        flexible: bool,
    ) -> Result<(), EncodeError>;

    /// Reads the fields that `version` carries; the others have their defaults.
    fn read_fields(input: &mut Decoder, version: i16, flexible: bool) -> Result<Self, DecodeError>;
}

/// A whole message.
pub trait Message: Struct {
    /// The message's name.
    const NAME: &'static str;
    /// The versions that exist.
    const VERSIONS: Versions;
    /// The versions that are flexible: compact lengths, tagged fields (KIP-482).
    const FLEXIBLE: Versions;

    /// Writes the message as `version`.
    fn encode(&self, out: &mut Encoder, version: i16) -> Result<(), EncodeError> {
        if !Self::VERSIONS.contains(version) {
            return Err(EncodeError::Version {
                message: Self::NAME,
                version,
            });
        }
        self.write_fields(out, version, Self::FLEXIBLE.contains(version))
    }

    /// Reads a message of `version`. What follows it is left in `input`.
    fn decode(input: &mut Decoder, version: i16) -> Result<Self, DecodeError> {
        if !Self::VERSIONS.contains(version) {
            return Err(DecodeError {
                field: Self::NAME,
                problem: Problem::Version(version),
            });
        }
        Self::read_fields(input, version, Self::FLEXIBLE.contains(version))
    }

    /// What the message is made of.
    fn message_schema() -> MessageSchema {
        MessageSchema {
            body: Self::schema(),
            versions: Self::VERSIONS,
            flexible: Self::FLEXIBLE,
        }
    }
}

/// Declares a message and the structs that it is made of.
///
/// Fields stand in the order of the wire, tagged ones in the order of their tags.
///
/// ```
/// kohort_wire::message! {
///     /// Asks how the weather is. Versions 0 to 3, the last of them flexible.
///     pub struct WeatherRequest: 0..=3, flexible 3.. {
///         /// Where; in every version.
///         place: kohort_wire::ByteString [0..],
///         /// How many days ahead; versions 1 and 2 only, silently left out of others.
///         days: i32 [1..=2, ignorable] = 7,
///         /// What is asked for; may be null, meaning everything.
///         kinds: Option<Vec<WeatherKind>> [2.., null 2..],
///         /// A tagged field.
///         language: kohort_wire::ByteString [3.., tag 0] = "en".into(),
///     }
///
///     /// A kind of weather.
///     pub struct WeatherKind {
///         /// Its number.
///         kind: i8 [2..],
///     }
/// }
/// ```
#[macro_export]
macro_rules! message {
    ($(
        $(#[$meta:meta])*
        pub struct $name:ident
        $(: $first:literal ..= $last:literal $(, flexible $flexible:literal ..)?)?
        {
            $(
                $(#[$field_meta:meta])*
                $field:ident : $type:ty [$($rule:tt)+] $(= $default:expr)?
            ),* $(,)?
        }
    )+) => { $(
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq)]
        pub struct $name {
            $(
                $(#[$field_meta])*
                // A name that says everything needs no more words.
                #[allow(missing_docs)]
                pub $field: $type,
            )*
        }

        impl ::std::default::Default for $name {
            fn default() -> Self {
                $name {
                    $($field: $crate::message!(@default $($default)?),)*
                }
            }
        }

        impl $crate::codec::Struct for $name {
            fn schema() -> $crate::codec::schema::StructSchema {
                let default = Self::default();
                let _ = &default;
                $crate::codec::schema::StructSchema {
                    name: stringify!($name),
                    fields: vec![$(
                        $crate::codec::schema::FieldSchema {
                            name: stringify!($field),
                            kind: <$type as $crate::codec::Field>::kind(),
                            rule: $crate::rule!($($rule)+),
                            default: format!("{:?}", default.$field),
                        },
                    )*],
                }
            }

            fn throttle_time_ms(&self) -> i32 {
                #[allow(unused_mut)]
                let mut throttle_time_ms = 0;
                $(
                    if stringify!($field) == "throttle_time_ms" {
                        let field: &dyn ::std::any::Any = &self.$field;
                        throttle_time_ms = field.downcast_ref().copied().unwrap_or_default();
                    }
                )*
                throttle_time_ms
            }

            fn write_fields(
                &self,
                out: &mut $crate::codec::Encoder,
                version: i16,
                flexible: bool,
            ) -> Result<(), $crate::codec::EncodeError> {
                use $crate::codec::{EncodeError, Field, Rule};
                #[allow(unused_mut)]
                let mut tagged = 0u32;
                $({
                    const RULE: Rule = $crate::rule!($($rule)+);
                    const NAME: &str = concat!(stringify!($name), ".", stringify!($field));
                    let is_default = || {
                        let default: $type = $crate::message!(@default $($default)?);
                        self.$field == default
                    };
                    if RULE.in_order(version) {
                        if self.$field.is_null() && !RULE.null.contains(version) {
                            return Err(EncodeError::Null { field: NAME, version });
                        }
                        self.$field.write(out, version, flexible)?;
                    } else if RULE.tagged(version) {
                        tagged += u32::from(!is_default());
                    } else if !RULE.ignorable && !is_default() {
                        return Err(EncodeError::FieldNotInVersion { field: NAME, version });
                    }
                })*
                if flexible {
                    out.unsigned_varint(tagged);
                }
                if tagged > 0 {
                    $({
                        const RULE: Rule = $crate::rule!($($rule)+);
                        if let (true, Some(tag)) = (RULE.tagged(version), RULE.tag) {
                            let default: $type = $crate::message!(@default $($default)?);
                            if self.$field != default {
                                out.tagged(tag, |out| self.$field.write_tagged(out, version))?;
                            }
                        }
                    })*
                }
                Ok(())
            }

            fn read_fields(
                input: &mut $crate::codec::Decoder,
                version: i16,
                flexible: bool,
            ) -> Result<Self, $crate::codec::DecodeError> {
                use $crate::codec::{DecodeError, Field, Problem, Rule};
                $(
                    #[allow(unused_mut)]
                    let mut $field: $type = {
                        const RULE: Rule = $crate::rule!($($rule)+);
                        const NAME: &str = concat!(stringify!($name), ".", stringify!($field));
                        if RULE.in_order(version) {
                            let value: $type = Field::read(input, version, flexible)
                                .map_err(|error: DecodeError| error.at(NAME))?;
                            if value.is_null() && !RULE.null.contains(version) {
                                return Err(DecodeError { field: NAME, problem: Problem::Null });
                            }
                            value
                        } else {
                            $crate::message!(@default $($default)?)
                        }
                    };
                )*
                if flexible {
                    for _ in 0..input.unsigned_varint()? {
                        let tag = input.unsigned_varint()?;
                        let length = input.unsigned_varint()? as usize;
                        match tag {
                            $(
                                tag if {
                                    const RULE: Rule = $crate::rule!($($rule)+);
                                    RULE.tagged(version) && RULE.tag == Some(tag)
                                } => {
                                    const NAME: &str =
                                        concat!(stringify!($name), ".", stringify!($field));
                                    $field = input
                                        .part(length, |part| Field::read_tagged(part, version))
                                        .map_err(|error: DecodeError| error.at(NAME))?;
                                }
                            )*
                            _ => input.skip(length)?,
                        }
                    }
                }
                Ok($name { $($field,)* })
            }
        }

        impl $crate::codec::Field for $name {
            fn kind() -> $crate::codec::schema::Kind {
                $crate::codec::schema::Kind::Struct(<$name as $crate::codec::Struct>::schema())
            }

            fn write(
                &self,
                out: &mut $crate::codec::Encoder,
                version: i16,
                flexible: bool,
            ) -> Result<(), $crate::codec::EncodeError> {
                $crate::codec::Struct::write_fields(self, out, version, flexible)
            }

            fn read(
                input: &mut $crate::codec::Decoder,
                version: i16,
                flexible: bool,
            ) -> Result<Self, $crate::codec::DecodeError> {
                $crate::codec::Struct::read_fields(input, version, flexible)
            }
        }

        impl $crate::codec::Nullable for $name {
            fn write_nullable(
                value: Option<&Self>,
                out: &mut $crate::codec::Encoder,
                version: i16,
                flexible: bool,
            ) -> Result<(), $crate::codec::EncodeError> {
                $crate::codec::Field::write(
                    &if value.is_some() { 1i8 } else { -1 }, out, version, flexible,
                )?;
                value.map_or(Ok(()), |value| {
                    $crate::codec::Struct::write_fields(value, out, version, flexible)
                })
            }

            fn read_nullable(
                input: &mut $crate::codec::Decoder,
                version: i16,
                flexible: bool,
            ) -> Result<Option<Self>, $crate::codec::DecodeError> {
                match input.i8()? {
                    ..0 => Ok(None),
                    _ => $crate::codec::Struct::read_fields(input, version, flexible).map(Some),
                }
            }

            fn write_nullable_tagged(
                value: Option<&Self>,
                out: &mut $crate::codec::Encoder,
                version: i16,
            ) -> Result<(), $crate::codec::EncodeError> {
                out.unsigned_varint(value.is_some().into());
                value.map_or(Ok(()), |value| {
                    $crate::codec::Struct::write_fields(value, out, version, true)
                })
            }

            fn read_nullable_tagged(
                input: &mut $crate::codec::Decoder,
                version: i16,
            ) -> Result<Option<Self>, $crate::codec::DecodeError> {
                match input.unsigned_varint()? {
                    0 => Ok(None),
                    _ => $crate::codec::Struct::read_fields(input, version, true).map(Some),
                }
            }
        }

        $(
            impl $crate::codec::Message for $name {
                const NAME: &'static str = stringify!($name);
                const VERSIONS: $crate::codec::Versions =
                    $crate::codec::Versions::new($first, $last);
                const FLEXIBLE: $crate::codec::Versions =
                    $crate::message!(@flexible $($flexible)?);
            }
        )?
    )+ };
    (@default) => { ::std::default::Default::default() };
    (@default $default:expr) => { $default };
    (@flexible) => { $crate::codec::Versions::NONE };
    (@flexible $first:literal) => { $crate::codec::Versions::new($first, i16::MAX) };
}
