//! The values of settings.

use std::{str::FromStr, time::Duration};

use crate::{Error, Result};

pub(super) fn number<T: FromStr>(name: &str, value: &str) -> Result<T> {
    value
        .parse()
        .map_err(|_| Error::config(name, format!("{value:?} is not a number in its range")))
}

/// A time in milliseconds; librdkafka's `linger.ms` takes fractions.
pub(super) fn ms(name: &str, value: &str) -> Result<Duration> {
    if let Ok(ms) = value.parse() {
        return Ok(Duration::from_millis(ms));
    }
    let seconds = number::<f64>(name, value)? / 1000.0;
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| Error::config(name, format!("{value:?} is not a number in its range")))
}

/// `true` or `false`, or librdkafka's short forms.
pub(super) fn flag(name: &str, value: &str) -> Result<bool> {
    match &*value.to_ascii_lowercase() {
        "true" | "t" | "1" => Ok(true),
        "false" | "f" | "0" => Ok(false),
        _ => Err(Error::config(
            name,
            format!("{value:?} is not true or false"),
        )),
    }
}

/// One of several words, in upper or lower case.
pub(super) fn choice<T: Clone>(name: &str, value: &str, choices: &[(&str, T)]) -> Result<T> {
    let found = choices
        .iter()
        .find(|(text, _)| text.eq_ignore_ascii_case(value));
    found.map(|(_, choice)| choice.clone()).ok_or_else(|| {
        let known: Vec<_> = choices.iter().map(|(text, _)| *text).collect();
        Error::config(name, format!("{value:?} is none of {}", known.join(", ")))
    })
}

/// `PnDTnHnMnS` (ISO 8601), as Java reads durations.
pub(super) fn iso_duration(text: &str) -> Option<Duration> {
    let text = text.to_ascii_uppercase();
    let (days, time) = match text.strip_prefix('P')?.split_once('T') {
        Some((days, time)) => (days.to_owned(), time.to_owned()),
        None => (text[1..].to_owned(), String::new()),
    };
    let mut total = Duration::ZERO;
    let mut any = false;
    for (part, units) in [
        (days, &[('D', 86_400)][..]),
        (time, &[('H', 3600), ('M', 60), ('S', 1)]),
    ] {
        let mut number = String::new();
        for character in part.chars() {
            if character.is_ascii_digit() || character == '.' {
                number.push(character);
                continue;
            }
            let (_, seconds) = units.iter().find(|(unit, _)| *unit == character)?;
            let amount: f64 = number.parse().ok()?;
            let amount = Duration::try_from_secs_f64(amount * f64::from(*seconds)).ok()?;
            total = total.checked_add(amount)?;
            number.clear();
            any = true;
        }
        if !number.is_empty() {
            return None;
        }
    }
    any.then_some(total)
}
