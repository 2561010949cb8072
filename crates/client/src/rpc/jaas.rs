//! `sasl.jaas.config`, as Java's clients have it: a login module with its options.

use crate::{Error, Result};

const SETTING: &str = "sasl.jaas.config";

/// The options of a login module: `module required name="value" other=value;`.
pub(super) struct Jaas(Vec<(String, String)>);

impl Jaas {
    /// No text has no options.
    pub(super) fn parse(text: &str) -> Result<Jaas> {
        let mut rest = text.trim().trim_end_matches(';').trim_end();
        // The module's class and `required`: which module it is follows from the mechanism.
        for _ in 0..2 {
            rest = rest
                .split_once(char::is_whitespace)
                .map_or("", |(_, rest)| rest.trim_start());
        }
        let mut options = Vec::new();
        while !rest.is_empty() {
            let (name, after) = rest.split_once('=').ok_or_else(|| {
                Error::config(SETTING, "an option is not of the form name=\"value\"")
            })?;
            let (value, after) = value(after.trim_start())?;
            options.push((name.trim().to_owned(), value));
            rest = after.trim_start();
        }
        Ok(Jaas(options))
    }

    pub(super) fn get(&self, wanted: &str) -> Option<&str> {
        let mut options = self.iter();
        options
            .find(|(name, _)| *name == wanted)
            .map(|(_, value)| value)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (&**name, &**value))
    }
}

/// A value, in quotes or not, and what follows it. A backslash takes away what a character means.
fn value(text: &str) -> Result<(String, &str)> {
    let quote = text
        .chars()
        .next()
        .filter(|first| ['"', '\''].contains(first));
    let Some(quote) = quote else {
        let end = text.find(char::is_whitespace).unwrap_or(text.len());
        return Ok((text[..end].to_owned(), &text[end..]));
    };
    let mut value = String::new();
    let mut characters = text.char_indices().skip(1);
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => value.extend(characters.next().map(|(_, character)| character)),
            _ if character == quote => return Ok((value, &text[at + 1..])),
            _ => value.push(character),
        }
    }
    // Not the text itself: it may be a password.
    Err(Error::config(
        SETTING,
        format!("there is no closing {quote}"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_with_and_without_quotes() {
        let text = r#"org.apache.kafka.common.security.plain.PlainLoginModule required
            username="a b" password='it\'s "x"; y' n=7;"#;
        let jaas = Jaas::parse(text).unwrap();
        assert_eq!(jaas.get("username"), Some("a b"));
        assert_eq!(jaas.get("password"), Some(r#"it's "x"; y"#));
        assert_eq!(jaas.get("n"), Some("7"));
        assert_eq!(jaas.get("user"), None);
    }

    #[test]
    fn what_is_not_of_the_form_is_an_error_that_tells_no_password() {
        for text in [r#"m required password="secret"#, "m required password"] {
            let error = Jaas::parse(text).err().unwrap().to_string();
            assert!(error.starts_with("sasl.jaas.config: "), "{error}");
            assert!(!error.contains("secret"), "{error}");
        }
        assert!(Jaas::parse("").unwrap().iter().next().is_none());
    }
}
