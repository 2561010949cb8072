//! Settings as DescribeConfigs shows them: each with where its value comes from.

use super::{BROKER, Change, Definition, GROUP, Kind, TOPIC, Values};

/// Where a value comes from, with Kafka's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    Topic = 1,
    Broker = 2,
    Cluster = 3,
    Start = 4,
    Default = 5,
    Group = 8,
}

/// A value that a setting has or would have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Synonym {
    pub(crate) name: &'static str,
    pub(crate) value: Option<String>,
    pub(crate) source: Source,
}

/// A setting, with all its values, the one that holds first.
#[derive(Debug, Clone)]
pub(crate) struct Shown {
    pub(crate) definition: &'static Definition,
    pub(crate) synonyms: Vec<Synonym>,
}

impl Shown {
    pub(crate) fn value(&self) -> Option<&str> {
        self.synonyms
            .first()
            .and_then(|first| first.value.as_deref())
    }

    pub(crate) fn source(&self) -> Source {
        self.synonyms
            .first()
            .map_or(Source::Default, |first| first.source)
    }

    pub(crate) fn is_read_only(&self) -> bool {
        self.definition.change == Change::AtStart
    }

    pub(crate) fn kind(&self) -> Kind {
        self.definition.kind
    }
}

/// The broker's settings at their three levels.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Levels<'a> {
    pub(crate) broker: &'a Values,
    pub(crate) cluster: &'a Values,
    pub(crate) started_with: &'a Values,
}

impl Levels<'_> {
    fn synonyms(&self, name: &str, scale: i64, out: &mut Vec<Synonym>) {
        let Some(definition) = BROKER.get(name) else {
            return;
        };
        let levels = [
            (self.broker, Source::Broker),
            (self.cluster, Source::Cluster),
            (self.started_with, Source::Start),
        ];
        for (values, source) in levels {
            if let Some(value) = values.get(name) {
                out.push(synonym(definition, Some(scaled(value, scale)), source));
            }
        }
        if let Some(value) = definition.default {
            out.push(synonym(
                definition,
                Some(scaled(value, scale)),
                Source::Default,
            ));
        }
    }
}

fn synonym(definition: &Definition, value: Option<String>, source: Source) -> Synonym {
    Synonym {
        name: definition.name,
        value,
        source,
    }
}

/// A value in another unit.
fn scaled(value: &str, factor: i64) -> String {
    match value.parse::<i64>() {
        Ok(number) if factor != 1 && number >= 0 => number.saturating_mul(factor).to_string(),
        _ => value.to_owned(),
    }
}

/// The settings of a topic.
pub(crate) fn topic_settings(own: &Values, broker: Levels<'_>) -> Vec<Shown> {
    let shown = TOPIC.iter().filter(|definition| {
        !definition.name.starts_with("internal.") || own.contains_key(definition.name)
    });
    shown
        .map(|definition| inheriting(definition, own, Source::Topic, broker))
        .collect()
}

/// The settings of a group.
pub(crate) fn group_settings(own: &Values, broker: Levels<'_>) -> Vec<Shown> {
    GROUP
        .iter()
        .map(|definition| inheriting(definition, own, Source::Group, broker))
        .collect()
}

fn inheriting(
    definition: &'static Definition,
    own: &Values,
    own_source: Source,
    broker: Levels<'_>,
) -> Shown {
    let mut synonyms = Vec::new();
    if let Some(value) = own.get(definition.name) {
        synonyms.push(synonym(definition, Some(value.clone()), own_source));
    }
    for &(name, factor) in definition.fallbacks {
        broker.synonyms(name, factor, &mut synonyms);
    }
    // All that is set comes before all that is only a default; within that, the order stays.
    synonyms.sort_by_key(|synonym| synonym.source == Source::Default);
    if synonyms.is_empty() {
        let default = definition.default.map(str::to_owned);
        synonyms.push(synonym(definition, default, Source::Default));
    }
    Shown {
        definition,
        synonyms,
    }
}

/// The settings of this broker.
pub(crate) fn broker_settings(levels: Levels<'_>) -> Vec<Shown> {
    BROKER
        .iter()
        .map(|definition| {
            let mut synonyms = Vec::new();
            levels.synonyms(definition.name, 1, &mut synonyms);
            if synonyms.is_empty() {
                synonyms.push(synonym(definition, None, Source::Default));
            }
            Shown {
                definition,
                synonyms,
            }
        })
        .collect()
}

/// The settings that have been changed for the whole cluster.
pub(crate) fn cluster_settings(cluster: &Values) -> Vec<Shown> {
    BROKER
        .iter()
        .filter_map(|definition| {
            let value = cluster.get(definition.name)?;
            Some(Shown {
                definition,
                synonyms: vec![synonym(definition, Some(value.clone()), Source::Cluster)],
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(pairs: &[(&str, &str)]) -> Values {
        pairs
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_string()))
            .collect()
    }

    fn retention(own: &Values, broker: &Values, started_with: &Values) -> Shown {
        let levels = Levels {
            broker,
            cluster: &Values::new(),
            started_with,
        };
        let shown = topic_settings(own, levels);
        shown
            .into_iter()
            .find(|shown| shown.definition.name == "retention.ms")
            .unwrap()
    }

    #[test]
    fn a_topic_takes_what_it_has_not_set_from_the_broker_in_the_right_unit() {
        let none = Values::new();
        let shown = retention(&none, &none, &none);
        assert_eq!(shown.value(), Some("604800000"));
        assert_eq!(shown.source(), Source::Default);

        let hours = values(&[("log.retention.hours", "2")]);
        let shown = retention(&none, &none, &hours);
        assert_eq!(shown.value(), Some("7200000"));
        assert_eq!(shown.source(), Source::Start);

        let own = values(&[("retention.ms", "5")]);
        let shown = retention(&own, &none, &hours);
        assert_eq!(shown.value(), Some("5"));
        assert_eq!(shown.source(), Source::Topic);
        assert_eq!(shown.synonyms.len(), 3);
    }
}
