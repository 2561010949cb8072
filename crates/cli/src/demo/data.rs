//! The earthquakes.

use crate::failure::Failure;

/// A line of `data/earthquakes.csv`; `data/README.md` says where it is from.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Quake {
    pub(super) id: &'static str,
    /// When, as people write it.
    pub(super) time: &'static str,
    /// When, in milliseconds since 1970.
    pub(super) timestamp_ms: i64,
    pub(super) magnitude: Option<f64>,
    pub(super) region: &'static str,
    pub(super) place: &'static str,
}

const DATA: &str = include_str!("../../data/earthquakes.csv");

/// All of them, in the order in which they happened.
pub(super) fn quakes() -> Result<Vec<Quake>, Failure> {
    let lines = DATA.lines().skip(1);
    let quakes = lines.map(|line| {
        quake(line).ok_or_else(|| Failure::new(format!("the demo's data is damaged at: {line}")))
    });
    quakes.collect()
}

fn quake(line: &'static str) -> Option<Quake> {
    let mut fields = line.splitn(8, ',');
    let (id, time, magnitude) = (fields.next()?, fields.next()?, fields.next()?);
    // Depth, latitude, longitude.
    let (region, place) = (fields.nth(3)?, fields.next()?);
    Some(Quake {
        id,
        time,
        timestamp_ms: time.parse::<jiff::Timestamp>().ok()?.as_millisecond(),
        magnitude: match magnitude {
            "" => None,
            number => Some(number.parse().ok()?),
        },
        region,
        place: place.trim_matches('"'),
    })
}

impl Quake {
    /// What stands in the topic.
    pub(super) fn to_json(&self) -> String {
        serde_json::json!({
            "id": self.id,
            "time": self.time,
            "magnitude": self.magnitude,
            "place": self.place,
        })
        .to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_an_earthquake() {
        let quakes = quakes().expect("readable");
        assert_eq!(quakes.len(), 1_707);
        assert!(quakes.is_sorted_by_key(|quake| quake.timestamp_ms));
        assert!(quakes.iter().all(|quake| !quake.region.is_empty()));
        let strongest = quakes
            .iter()
            .filter_map(|quake| quake.magnitude)
            .fold(0.0, f64::max);
        assert!((6.0..7.0).contains(&strongest), "{strongest}");
    }
}
