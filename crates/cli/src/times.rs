//! Times and durations on the command line.

use std::time::Duration;

use jiff::{SignedDuration, Span, SpanRelativeTo, Timestamp, civil::DateTime, tz::TimeZone};

/// A time in milliseconds since 1970; in UTC unless it names an offset. A date is its midnight.
pub(crate) fn datetime(text: &str) -> Result<i64, String> {
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(time.as_millisecond());
    }
    let time = text.parse::<DateTime>().ok();
    let time = time.and_then(|time| TimeZone::UTC.to_timestamp(time).ok());
    time.map(|time| time.as_millisecond()).ok_or_else(|| {
        "expected a time such as 2026-11-29, 2026-11-29T20:00 (UTC) or 2026-11-29T20:00+01:00"
            .to_owned()
    })
}

/// A duration, in ISO 8601 or as people write it.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || "expected a duration such as 90m, 2h30m, 7d or PT2H30M".to_owned();
    let span: Span = text.parse().map_err(|_| wrong())?;
    let duration: SignedDuration = span
        .to_duration(SpanRelativeTo::days_are_24_hours())
        .map_err(|_| wrong())?;
    Ok(duration.unsigned_abs())
}

/// A time, or a duration before now.
pub(crate) fn since(text: &str) -> Result<Timestamp, String> {
    let wrong = || "expected a time such as 2026-11-29 or 2026-11-29T20:00, or a duration such as 90m or 7d";
    if let Ok(time) = datetime(text) {
        return Timestamp::from_millisecond(time).map_err(|_| wrong().to_owned());
    }
    let ago = duration(text).map_err(|_| wrong().to_owned())?;
    let ago = SignedDuration::try_from(ago).map_err(|_| wrong().to_owned())?;
    Timestamp::now()
        .checked_sub(ago)
        .map_err(|_| wrong().to_owned())
}

/// A time for people to read.
pub(crate) fn clock(at_ms: i64) -> String {
    match Timestamp::from_millisecond(at_ms) {
        Ok(time) => time.strftime("%Y-%m-%d %H:%M:%SZ").to_string(),
        Err(_) => format!("{at_ms} ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_in_utc_unless_they_name_an_offset() {
        assert_eq!(datetime("1970-01-01T00:00:01.5"), Ok(1_500));
        assert_eq!(datetime("1970-01-01T01:00:01+01:00"), Ok(1_000));
        assert_eq!(datetime("1970-01-02"), Ok(86_400_000));
        assert!(datetime("yesterday").is_err());
    }

    #[test]
    fn durations_are_iso_or_friendly() {
        assert_eq!(duration("PT2H30M"), Ok(Duration::from_secs(9_000)));
        assert_eq!(duration("P1D"), Ok(Duration::from_secs(86_400)));
        assert_eq!(duration("90m"), Ok(Duration::from_secs(5_400)));
        assert!(duration("soon").is_err());
    }

    #[test]
    fn since_takes_a_date_a_time_or_a_duration() {
        for (text, expected) in [
            ("2026-11-29T20:00Z", "2026-11-29 20:00:00Z"),
            ("2026-11-29T20:00", "2026-11-29 20:00:00Z"),
            ("2026-11-29 20:00", "2026-11-29 20:00:00Z"),
            ("2026-11-30", "2026-11-30 00:00:00Z"),
        ] {
            let time = since(text).expect(text);
            assert_eq!(clock(time.as_millisecond()), expected);
        }
        for (text, hours) in [
            ("90m", 1.5),
            ("7d", 168.0),
            ("1h 30m", 1.5),
            ("PT12H", 12.0),
        ] {
            let ago = Timestamp::now().duration_since(since(text).expect(text));
            assert!((ago.as_secs_f64() - hours * 3_600.0).abs() < 5.0, "{text}");
        }
        assert!(since("yesterday").is_err());
    }
}
