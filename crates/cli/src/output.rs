//! Tables for people, JSON for programs, remarks on standard error.

use std::{
    fmt::Display,
    io::{self, Write},
};

use clap::{Args, ValueEnum};
use kohort::text::{printable_line, printable_name};
use serde_json::Value;

/// How results are printed.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Output {
    /// Output format
    #[arg(short = 'o', long = "output", value_name = "FORMAT", value_enum, default_value_t = Format::Table)]
    format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Columns
    Table,
    /// JSON
    Json,
}

/// Rows under headings. A cell is a text, a number, a list, the partitions of topics (an object of
/// lists), or null if its value is unknown.
#[derive(Debug)]
pub(crate) struct Table {
    headings: &'static [&'static str],
    /// Headings of further cells, which are in JSON only.
    details: &'static [&'static str],
    rows: Vec<Vec<Value>>,
}

impl Table {
    /// An empty table. Headings are in capitals; in JSON they become names in lower case.
    pub(crate) fn new(headings: &'static [&'static str]) -> Table {
        Table::with_details(headings, &[])
    }

    /// An empty table whose rows end with cells that are in JSON only.
    pub(crate) fn with_details(
        headings: &'static [&'static str],
        details: &'static [&'static str],
    ) -> Table {
        Table {
            headings,
            details,
            rows: Vec::new(),
        }
    }

    pub(crate) fn row(&mut self, cells: Vec<Value>) {
        debug_assert_eq!(cells.len(), self.headings.len() + self.details.len());
        self.rows.push(cells);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    fn to_json(&self) -> Value {
        let headings = self.headings.iter().chain(self.details);
        let names: Vec<String> = headings
            .map(|heading| heading.to_lowercase().replace('-', "_"))
            .collect();
        let object = |row: &Vec<Value>| {
            let fields = names.iter().cloned().zip(row.iter().cloned());
            Value::Object(fields.collect())
        };
        self.rows.iter().map(object).collect()
    }

    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let mut lines = vec![Vec::with_capacity(self.headings.len()); self.rows.len() + 1];
        for (column, heading) in self.headings.iter().enumerate() {
            let cells = self.rows.iter().map(|row| text(&row[column]));
            let cells: Vec<String> = std::iter::once((*heading).to_owned())
                .chain(cells)
                .collect();
            let width = cells.iter().map(|cell| cell.chars().count()).max();
            let width = width.unwrap_or_default();
            let is_number = self.rows.iter().any(|row| row[column].is_number());
            for (line, cell) in lines.iter_mut().zip(cells) {
                line.push(if is_number {
                    format!("{cell:>width$}")
                } else {
                    format!("{cell:<width$}")
                });
            }
        }
        for line in lines {
            writeln!(out, "{}", line.join("  ").trim_end())?;
        }
        Ok(())
    }
}

/// A cell as text. Names come from peers, and must not move the cursor or fill the screen.
fn text(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => printable_name(text).into_owned(),
        Value::Array(values) => values.iter().map(text).collect::<Vec<_>>().join(","),
        // The partitions of topics, as Kafka's tools write them: orders(0,1) payments(2).
        Value::Object(fields) => {
            let fields = fields.iter();
            let texts =
                fields.map(|(name, value)| format!("{}({})", printable_name(name), text(value)));
            texts.collect::<Vec<_>>().join(" ")
        }
        other => other.to_string(),
    }
}

/// Prints a line. If the reader has gone, that is an error; with `println!` it would be a panic.
pub(crate) fn line(text: impl Display) -> io::Result<()> {
    writeln!(io::stdout(), "{}", printable_line(&text.to_string()))
}

/// Tells the user something that is not part of the result, on standard error.
pub(crate) fn remark(text: impl Display) {
    let text = text.to_string();
    // There is no better place to report that standard error is closed.
    let _ = writeln!(io::stderr(), "kohort: {}", printable_line(&text));
}

/// `1 member`, `2 members`.
pub(crate) fn counted(count: usize, noun: &str) -> String {
    match count {
        1 => format!("1 {noun}"),
        _ => format!("{count} {noun}s"),
    }
}

impl Output {
    /// Prints a table.
    pub(crate) fn print(self, table: &Table) -> io::Result<()> {
        let mut out = io::stdout().lock();
        match self.format {
            Format::Table => table.write(&mut out),
            Format::Json => writeln!(out, "{:#}", table.to_json()),
        }?;
        out.flush()
    }

    /// Whether it is for programs.
    pub(crate) fn is_json(self) -> bool {
        self.format == Format::Json
    }

    /// Prints a line for people; programs do not need it.
    pub(crate) fn say(self, text: impl Display) -> io::Result<()> {
        match self.format {
            Format::Table => line(text),
            Format::Json => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::with_details(&["TOPIC", "LAG", "CLIENT-ID"], &["LOG-START"]);
        table.row(vec!["earthquakes".into(), 7.into(), Value::Null, 1.into()]);
        table.row(vec!["a".into(), 12345.into(), "me".into(), 2.into()]);
        table
    }

    fn written(table: &Table) -> String {
        let mut out = Vec::new();
        table.write(&mut out).expect("written to memory");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn columns_are_aligned_numbers_to_the_right() {
        let expected = "TOPIC          LAG  CLIENT-ID\n\
                        earthquakes      7  -\n\
                        a            12345  me\n";
        assert_eq!(written(&table()), expected);
    }

    #[test]
    fn names_with_control_characters_stay_in_their_cells() {
        let mut table = Table::new(&["GROUP"]);
        table.row(vec!["a\x1b[2J\nb\u{202e}".into()]);
        assert_eq!(written(&table), "GROUP\na\u{fffd}[2J\u{fffd}b\u{fffd}\n");
        assert_eq!(table.to_json()[0]["group"], "a\x1b[2J\nb\u{202e}");
    }

    #[test]
    fn json_has_the_headings_as_names_and_the_details() {
        let json = table().to_json();
        assert_eq!(json[0]["client_id"], Value::Null);
        assert_eq!(json[1]["lag"], 12345);
        assert_eq!(json[1]["log_start"], 2);
    }

    #[test]
    fn lists_are_arrays_in_json_and_short_in_tables() {
        let mut table = Table::new(&["REPLICAS", "ASSIGNMENT"]);
        let assignment = serde_json::json!({"orders": [0, 1], "x\n": [3]});
        table.row(vec![vec![1, 2].into(), assignment]);
        assert_eq!(
            written(&table),
            "REPLICAS  ASSIGNMENT\n1,2       orders(0,1) x\u{fffd}(3)\n"
        );
        assert_eq!(table.to_json()[0]["replicas"][1], 2);
        assert_eq!(table.to_json()[0]["assignment"]["orders"][1], 1);
    }
}
