//! Where to start reading, written as for kcat: `beginning`, `end`, `N`, `-N`, `s@TIME`.

use std::str::FromStr;

use crate::times::datetime;

/// Where in a partition to start or stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Position {
    /// At its first record.
    Beginning,
    /// After its last record.
    End,
    /// At the group's committed offset.
    Stored,
    /// At an offset.
    Offset(i64),
    /// This many records before its end.
    BeforeEnd(i64),
    /// At the first record at or after a time in milliseconds since 1970.
    From(i64),
    /// Up to the first record at or after a time in milliseconds since 1970.
    Until(i64),
}

impl FromStr for Position {
    type Err = String;

    fn from_str(text: &str) -> Result<Position, String> {
        let number = |text: &str| {
            let number = text.parse::<i64>().ok().filter(|&n| n >= 0);
            number.ok_or_else(|| format!("{text:?} is not a number from 0"))
        };
        // kcat takes milliseconds; people would rather write a time.
        let time = |text: &str| number(text).or_else(|_| datetime(text));
        match text {
            "beginning" | "earliest" => Ok(Position::Beginning),
            "end" | "latest" => Ok(Position::End),
            "stored" => Ok(Position::Stored),
            _ => {
                if let Some(text) = text.strip_prefix("s@") {
                    time(text).map(Position::From)
                } else if let Some(text) = text.strip_prefix("e@") {
                    time(text).map(Position::Until)
                } else if let Some(count) = text.strip_prefix('-') {
                    number(count).map(Position::BeforeEnd)
                } else {
                    number(text).map(Position::Offset).map_err(|_| {
                        "expected beginning, end, an offset, -N for the last N records, or s@TIME \
                         for the records since a time"
                            .to_owned()
                    })
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_written_as_for_kcat() {
        let positions = [
            ("beginning", Position::Beginning),
            ("end", Position::End),
            ("stored", Position::Stored),
            ("17", Position::Offset(17)),
            ("-5", Position::BeforeEnd(5)),
            ("s@1517968154000", Position::From(1_517_968_154_000)),
            ("s@1970-01-02", Position::From(86_400_000)),
            ("e@0", Position::Until(0)),
        ];
        for (text, position) in positions {
            assert_eq!(text.parse(), Ok(position), "{text}");
        }
        for text in ["", "begin", "--5", "s@", "s@-1", "1.5", "-"] {
            assert!(text.parse::<Position>().is_err(), "{text}");
        }
    }
}
