//! Times and spans of time on the command line.

use std::time::Duration;

use jiff::{SignedDuration, Span, SpanRelativeTo, Timestamp, civil::DateTime, tz::TimeZone};

/// A time in milliseconds since 1970; in UTC unless it says otherwise.
pub(crate) fn datetime(text: &str) -> Result<i64, String> {
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(time.as_millisecond());
    }
    let time = text.parse::<DateTime>().ok();
    let time = time.and_then(|time| TimeZone::UTC.to_timestamp(time).ok());
    time.map(|time| time.as_millisecond())
        .ok_or_else(|| "write a time such as 2026-11-29T20:00 or 2026-11-29T20:00+01:00".to_owned())
}

/// A span of time, as ISO 8601 or as people write it.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || "write a duration such as PT2H30M, P7D or 90m".to_owned();
    let span: Span = text.parse().map_err(|_| wrong())?;
    let duration: SignedDuration = span
        .to_duration(SpanRelativeTo::days_are_24_hours())
        .map_err(|_| wrong())?;
    Ok(duration.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_in_utc_unless_they_say_otherwise() {
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
}
