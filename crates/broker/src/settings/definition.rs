//! What is known of a setting: its name, type, default, bounds and meaning.

use std::{collections::BTreeMap, fmt};

use super::words::Word;

/// The values that differ from their defaults, under their names.
pub(crate) type Values = BTreeMap<String, String>;

/// The type of a setting, with the number that DescribeConfigs has for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Bool = 1,
    Text = 2,
    Int = 3,
    Long = 5,
    Double = 6,
    List = 7,
}

/// What a value has to be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Rule {
    Any,
    AtLeast(i64),
    Between(i64, i64),
    Ratio,
    /// A negative number stands for no limit; 0 is neither.
    AboveZeroOrUnlimited,
    OneOf(&'static [&'static str]),
    /// Of a list: some of these, each once, or none.
    SomeOf(&'static [&'static str]),
    /// Of a list: some of these, each once, and at least one.
    OneOrMoreOf(&'static [&'static str]),
}

/// When a new value takes effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// At the next start: the broker refuses to change it while it runs.
    AtStart,
    /// At once.
    Live,
}

/// A setting.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Definition {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// `None`: not set, which DescribeConfigs shows as null.
    pub(crate) default: Option<&'static str>,
    pub(crate) rule: Rule,
    pub(crate) change: Change,
    pub(crate) documentation: &'static str,
    /// Whether it does anything here. Settings that only Kafka has a use for are accepted and shown.
    pub(crate) has_effect: bool,
    /// The settings of the broker that a topic's setting falls back on, the strongest first, with
    /// the factor that makes one the other's unit.
    pub(crate) fallbacks: &'static [(&'static str, i64)],
}

impl Definition {
    pub(crate) const fn new(
        name: &'static str,
        kind: Kind,
        default: &'static str,
        documentation: &'static str,
    ) -> Definition {
        Definition {
            name,
            kind,
            default: Some(default),
            rule: Rule::Any,
            change: Change::Live,
            documentation,
            has_effect: true,
            fallbacks: &[],
        }
    }

    /// A setting that is accepted and shown for Kafka's sake.
    pub(crate) const fn without_effect(
        name: &'static str,
        kind: Kind,
        default: &'static str,
    ) -> Definition {
        Definition {
            has_effect: false,
            ..Definition::new(
                name,
                kind,
                default,
                "Accepted for compatibility with Kafka; has no effect in kohort.",
            )
        }
    }

    pub(crate) const fn unset(mut self) -> Definition {
        self.default = None;
        self
    }

    pub(crate) const fn rule(mut self, rule: Rule) -> Definition {
        self.rule = rule;
        self
    }

    pub(crate) const fn at_start(mut self) -> Definition {
        self.change = Change::AtStart;
        self
    }

    pub(crate) const fn fallbacks(
        mut self,
        fallbacks: &'static [(&'static str, i64)],
    ) -> Definition {
        self.fallbacks = fallbacks;
        self
    }

    /// The value in the spelling in which it is kept, or what is wrong with it.
    pub(crate) fn check(&self, value: &str) -> Result<String, BadValue> {
        let bad = |expected: String| BadValue {
            name: self.name.to_owned(),
            value: value.to_owned(),
            expected,
        };
        let value = value.trim();
        match self.kind {
            Kind::Bool => match value.to_ascii_lowercase().as_str() {
                spelled @ ("true" | "false") => return Ok(spelled.to_owned()),
                _ => return Err(bad("true or false".to_owned())),
            },
            Kind::Int | Kind::Long => {
                let (first, last) = match self.kind {
                    Kind::Int => (i32::MIN.into(), i32::MAX.into()),
                    _ => (i64::MIN, i64::MAX),
                };
                let number = value.parse::<i64>().ok();
                let number = number
                    .filter(|number| (first..=last).contains(number))
                    .ok_or_else(|| bad("a whole number".to_owned()))?;
                match self.rule {
                    Rule::AtLeast(least) if number < least => {
                        return Err(bad(format!("at least {least}")));
                    }
                    Rule::Between(least, most) if !(least..=most).contains(&number) => {
                        return Err(bad(format!("between {least} and {most}")));
                    }
                    Rule::AboveZeroOrUnlimited if number == 0 => {
                        return Err(bad("at least 1, or -1 for no limit".to_owned()));
                    }
                    Rule::AboveZeroOrUnlimited => return Ok(number.max(-1).to_string()),
                    _ => return Ok(number.to_string()),
                }
            }
            Kind::Double => {
                let number = value
                    .parse::<f64>()
                    .ok()
                    .filter(|number| number.is_finite());
                let number = number.ok_or_else(|| bad("a number".to_owned()))?;
                if self.rule == Rule::Ratio && !(0.0..=1.0).contains(&number) {
                    return Err(bad("between 0 and 1".to_owned()));
                }
            }
            Kind::Text => {
                if let Rule::OneOf(words) = self.rule
                    && !words.contains(&value)
                {
                    return Err(bad(format!("one of {}", words.join(", "))));
                }
            }
            Kind::List => return self.check_list(value).map_err(bad),
        }
        Ok(value.to_owned())
    }

    /// A list in one spelling, or what it has to be.
    fn check_list(&self, value: &str) -> Result<String, String> {
        let words: Vec<&str> = match value {
            "" => Vec::new(),
            _ => value.split(',').map(str::trim).collect(),
        };
        let known = match self.rule {
            Rule::SomeOf(known) | Rule::OneOrMoreOf(known) => known,
            _ => return Ok(words.join(",")),
        };
        let has_twice = (1..words.len()).any(|at| words[..at].contains(&words[at]));
        let is_empty = words.is_empty() && matches!(self.rule, Rule::OneOrMoreOf(_));
        if is_empty || has_twice || !words.iter().all(|word| known.contains(word)) {
            return Err(format!("a list of {}, each at most once", known.join(", ")));
        }
        Ok(words.join(","))
    }
}

/// The elements of a list, as Kafka writes lists.
pub(crate) fn list(value: &str) -> impl Iterator<Item = &str> {
    value
        .split(',')
        .map(str::trim)
        .filter(|word| !word.is_empty())
}

/// A value that a setting cannot have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BadValue {
    name: String,
    value: String,
    expected: String,
}

impl fmt::Display for BadValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BadValue {
            name,
            value,
            expected,
        } = self;
        write!(f, "{name} cannot be \"{value}\": it must be {expected}")
    }
}

/// A table of settings.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Table {
    pub(crate) with_effect: &'static [Definition],
    pub(crate) without_effect: &'static [Definition],
}

impl Table {
    pub(crate) fn get(&self, name: &str) -> Option<&'static Definition> {
        self.iter().find(|definition| definition.name == name)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &'static Definition> + use<> {
        self.with_effect.iter().chain(self.without_effect)
    }

    /// The values in their spellings, or what is wrong with one of them. Values of unknown names are
    /// a newer version's.
    pub(crate) fn check(&self, values: &Values) -> Result<(), BadValue> {
        for (name, value) in values {
            if let Some(definition) = self.get(name) {
                definition.check(value)?;
            }
        }
        Ok(())
    }
}

/// Values that have been checked, read by their type.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View<'a> {
    pub(crate) table: Table,
    pub(crate) values: &'a Values,
}

impl<'a> View<'a> {
    pub(crate) fn text(&self, name: &str) -> Option<&'a str> {
        match self.values.get(name) {
            Some(value) => Some(value),
            None => self
                .table
                .get(name)
                .and_then(|definition| definition.default),
        }
    }

    pub(crate) fn long(&self, name: &str) -> i64 {
        self.optional_long(name).unwrap_or_default()
    }

    pub(crate) fn optional_long(&self, name: &str) -> Option<i64> {
        self.text(name).and_then(|value| value.parse().ok())
    }

    pub(crate) fn int(&self, name: &str) -> i32 {
        self.long(name) as i32
    }

    pub(crate) fn size(&self, name: &str) -> usize {
        usize::try_from(self.long(name)).unwrap_or_default()
    }

    /// The word that a setting has.
    pub(crate) fn word<T: Word>(&self, name: &str) -> T {
        self.text(name).and_then(T::parse).unwrap_or(T::DEFAULT)
    }

    /// The words of a list.
    pub(crate) fn words<T: Word>(&self, name: &str) -> Vec<T> {
        let words = list(self.text(name).unwrap_or_default());
        words.filter_map(T::parse).collect()
    }

    pub(crate) fn flag(&self, name: &str) -> bool {
        self.text(name) == Some("true")
    }

    pub(crate) fn double(&self, name: &str) -> f64 {
        self.text(name)
            .and_then(|value| value.parse().ok())
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENT: Definition =
        Definition::new("segment.bytes", Kind::Int, "1073741824", "").rule(Rule::AtLeast(1 << 20));
    const POLICY: Definition = Definition::new("cleanup.policy", Kind::List, "delete", "")
        .rule(Rule::SomeOf(&["compact", "delete"]));

    #[test]
    fn a_value_is_kept_in_one_spelling() {
        assert_eq!(SEGMENT.check(" 2000000 ").unwrap(), "2000000");
        let flag = Definition::new("preallocate", Kind::Bool, "false", "");
        assert_eq!(flag.check("TRUE").unwrap(), "true");
    }

    #[test]
    fn a_value_outside_its_bounds_is_refused_by_name() {
        let error = SEGMENT.check("12").unwrap_err().to_string();
        assert_eq!(
            error,
            "segment.bytes cannot be \"12\": it must be at least 1048576"
        );
        assert!(SEGMENT.check("99999999999").is_err());
        assert!(POLICY.check("delete,compact").is_ok());
        assert!(POLICY.check("forget").is_err());
        assert!(POLICY.check("delete,").is_err());
        assert!(POLICY.check("delete,delete").is_err());
        assert_eq!(POLICY.check(" delete , compact").unwrap(), "delete,compact");
    }

    #[test]
    fn a_list_may_be_empty_where_that_means_something() {
        assert_eq!(POLICY.check("").unwrap(), "");
        let protocols = POLICY.rule(Rule::OneOrMoreOf(&["classic"]));
        assert!(protocols.check("").is_err());
    }

    #[test]
    fn zero_is_not_taken_for_unlimited() {
        let hours = Definition::new("log.retention.hours", Kind::Int, "168", "")
            .rule(Rule::AboveZeroOrUnlimited);
        assert!(hours.check("0").is_err());
        assert_eq!(hours.check("1").unwrap(), "1");
        assert_eq!(hours.check("-7").unwrap(), "-1");
    }
}
