//! Where to begin, in the words of kcat: `beginning`, `end`, `N`, `-N`, `s@MS`.

use std::str::FromStr;

/// Where in a partition to begin or to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Position {
    /// At its first record.
    Beginning,
    /// After its last record.
    End,
    /// Where the group stopped.
    Stored,
    /// At an offset.
    Offset(i64),
    /// So many records before its end.
    BeforeEnd(i64),
    /// At the first record at or after a time in milliseconds since 1970.
    From(i64),
    /// Not beyond the records before a time.
    Until(i64),
}

impl FromStr for Position {
    type Err = String;

    fn from_str(text: &str) -> Result<Position, String> {
        let number = |text: &str| {
            text.parse::<i64>()
                .ok()
                .filter(|&n| n >= 0)
                .ok_or_else(|| format!("{text:?} is not a number from 0"))
        };
        match text {
            "beginning" | "earliest" => Ok(Position::Beginning),
            "end" | "latest" => Ok(Position::End),
            "stored" => Ok(Position::Stored),
            _ => {
                if let Some(time) = text.strip_prefix("s@") {
                    number(time).map(Position::From)
                } else if let Some(time) = text.strip_prefix("e@") {
                    number(time).map(Position::Until)
                } else if let Some(count) = text.strip_prefix('-') {
                    number(count).map(Position::BeforeEnd)
                } else {
                    number(text).map(Position::Offset).map_err(|_| {
                        "write beginning, end, an offset, -N for the last N records, or s@MS for a \
                         time in milliseconds"
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
