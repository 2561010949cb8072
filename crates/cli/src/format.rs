//! How a record is printed: the format strings of kcat, and JSON.

use std::{io::Write, str::FromStr};

use kohort::consumer::ConsumerRecord;
use serde_json::{Map, Value};

/// How a record is printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Format {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(Vec<u8>),
    Field(char),
}

/// The fields of a format.
const FIELDS: &str = "%t topic, %p partition, %o offset, %k key, %K its length, %s value, \
                      %S its length, %T timestamp, %h headers";

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Format, String> {
        let text = crate::produce::unescape(text)?;
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut characters = text.chars();
        while let Some(character) = characters.next() {
            if character != '%' {
                literal.push(character);
                continue;
            }
            match characters.next() {
                Some('%') => literal.push('%'),
                Some(field @ ('t' | 'p' | 'o' | 'k' | 'K' | 's' | 'S' | 'T' | 'h')) => {
                    if !literal.is_empty() {
                        parts.push(Part::Text(std::mem::take(&mut literal).into_bytes()));
                    }
                    parts.push(Part::Field(field));
                }
                Some(other) => {
                    return Err(format!("%{other} is not a field; the fields are {FIELDS}"));
                }
                None => return Err("the format ends in the middle of a field".to_owned()),
            }
        }
        if !literal.is_empty() {
            parts.push(Part::Text(literal.into_bytes()));
        }
        Ok(Format { parts })
    }
}

impl Format {
    /// The value in a line, behind the key and a separator if one is wanted.
    pub(crate) fn line(key_separator: Option<&str>) -> Format {
        let end = Part::Text(b"\n".to_vec());
        let mut parts = vec![Part::Field('s'), end];
        if let Some(separator) = key_separator {
            let key = [Part::Field('k'), Part::Text(separator.as_bytes().to_vec())];
            parts.splice(0..0, key);
        }
        Format { parts }
    }

    /// Writes a record.
    pub(crate) fn write(
        &self,
        record: &ConsumerRecord<'_>,
        out: &mut impl Write,
    ) -> std::io::Result<()> {
        for part in &self.parts {
            match part {
                Part::Text(text) => out.write_all(text)?,
                Part::Field('t') => out.write_all(record.topic.as_bytes())?,
                Part::Field('p') => write!(out, "{}", record.partition)?,
                Part::Field('o') => write!(out, "{}", record.offset)?,
                Part::Field('k') => out.write_all(record.key.unwrap_or_default())?,
                Part::Field('K') => write!(out, "{}", length(record.key))?,
                Part::Field('s') => out.write_all(record.value.unwrap_or_default())?,
                Part::Field('S') => write!(out, "{}", length(record.value))?,
                Part::Field('T') => write!(out, "{}", record.timestamp)?,
                Part::Field(_) => headers(record, out)?,
            }
        }
        Ok(())
    }
}

/// The length of a key or a value, −1 for null.
fn length(bytes: Option<&[u8]>) -> i64 {
    bytes.map_or(-1, |bytes| bytes.len() as i64)
}

fn headers(record: &ConsumerRecord<'_>, out: &mut impl Write) -> std::io::Result<()> {
    for (index, header) in record.headers.enumerate() {
        if index > 0 {
            out.write_all(b",")?;
        }
        out.write_all(header.key)?;
        out.write_all(b"=")?;
        out.write_all(header.value.unwrap_or(b"NULL"))?;
    }
    Ok(())
}

/// A record as one line of JSON, with the names that kcat uses. Bytes that are not UTF-8 stand in
/// hexadecimal digits under a name that ends in `_hex`.
pub(crate) fn json(record: &ConsumerRecord<'_>) -> Value {
    let mut object = Map::new();
    object.insert("topic".to_owned(), record.topic.to_string().into());
    object.insert("partition".to_owned(), record.partition.into());
    object.insert("offset".to_owned(), record.offset.into());
    object.insert("ts".to_owned(), record.timestamp.into());
    let headers: Vec<Value> = record
        .headers
        .map(|header| {
            let mut object = Map::new();
            insert(&mut object, "key", Some(header.key));
            insert(&mut object, "value", header.value);
            Value::Object(object)
        })
        .collect();
    if !headers.is_empty() {
        object.insert("headers".to_owned(), headers.into());
    }
    insert(&mut object, "key", record.key);
    insert(&mut object, "payload", record.value);
    Value::Object(object)
}

fn insert(object: &mut Map<String, Value>, name: &str, bytes: Option<&[u8]>) {
    let Some(bytes) = bytes else {
        object.insert(name.to_owned(), Value::Null);
        return;
    };
    match std::str::from_utf8(bytes) {
        Ok(text) => object.insert(name.to_owned(), text.into()),
        Err(_) => {
            let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            object.insert(format!("{name}_hex"), digits.into())
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_those_of_kcat() {
        let format: Format = r"%t [%p] at %o: %k\t%s 100%%\n"
            .parse()
            .expect("a good format");
        assert_eq!(format.parts.len(), 10);
        assert_eq!(format.parts[9], Part::Text(b" 100%\n".to_vec()));
        assert!("%".parse::<Format>().is_err());
        assert!(
            "%q".parse::<Format>()
                .is_err_and(|error| error.contains("%t topic"))
        );
    }

    #[test]
    fn bytes_that_are_no_text_stand_in_hexadecimal_digits() {
        let mut object = Map::new();
        insert(&mut object, "payload", Some(&[0xff, 0x01]));
        insert(&mut object, "key", None);
        assert_eq!(
            Value::Object(object).to_string(),
            r#"{"payload_hex":"ff01","key":null}"#
        );
    }
}
