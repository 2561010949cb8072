//! Tables for people, JSON for programs.

use std::{
    fmt::Display,
    io::{self, Write},
};

use clap::{Args, ValueEnum};
use serde_json::Value;

/// How results are printed.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Output {
    /// Output format.
    #[arg(short = 'o', long = "output", value_enum, default_value_t = Format::Table)]
    format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A table.
    Table,
    /// JSON.
    Json,
}

/// Rows of a table under their headings. A cell is text, a number, an array, or null if there is
/// nothing to show. In a table an array is a list with commas, and an object of arrays reads
/// `orders(0,1) payments(2)`, as Kafka's tools write an assignment.
#[derive(Debug)]
pub(crate) struct Table {
    headings: &'static [&'static str],
    rows: Vec<Vec<Value>>,
}

impl Table {
    /// An empty table. Headings are in capitals; in JSON they are names in small letters.
    pub(crate) fn new(headings: &'static [&'static str]) -> Table {
        Table {
            headings,
            rows: Vec::new(),
        }
    }

    pub(crate) fn row(&mut self, cells: Vec<Value>) {
        debug_assert_eq!(cells.len(), self.headings.len());
        self.rows.push(cells);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    fn to_json(&self) -> Value {
        let names: Vec<_> = self
            .headings
            .iter()
            .map(|heading| heading.to_lowercase().replace('-', "_"))
            .collect();
        let object = |row: &Vec<Value>| {
            Value::Object(names.iter().cloned().zip(row.iter().cloned()).collect())
        };
        self.rows.iter().map(object).collect()
    }

    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let cells: Vec<Vec<String>> = self
            .rows
            .iter()
            .map(|row| row.iter().map(text).collect())
            .collect();
        let widths: Vec<usize> = self
            .headings
            .iter()
            .enumerate()
            .map(|(column, heading)| {
                let cells = cells.iter().map(|row| row[column].chars().count());
                cells.max().unwrap_or_default().max(heading.len())
            })
            .collect();
        let is_number: Vec<bool> = (0..self.headings.len())
            .map(|column| self.rows.iter().any(|row| row[column].is_number()))
            .collect();
        let headings = self
            .headings
            .iter()
            .map(|heading| (*heading).to_owned())
            .collect();
        for row in std::iter::once(&headings).chain(&cells) {
            let mut line = String::new();
            for ((cell, width), is_number) in row.iter().zip(&widths).zip(&is_number) {
                match is_number {
                    true => line.push_str(&format!("{cell:>width$}  ")),
                    false => line.push_str(&format!("{cell:<width$}  ")),
                }
            }
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => sanitized(text),
        Value::Array(values) => values.iter().map(text).collect::<Vec<_>>().join(","),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| format!("{}({})", sanitized(name), text(value)))
            .collect::<Vec<_>>()
            .join(" "),
        other => other.to_string(),
    }
}

/// Text from a peer, without what would move the cursor.
fn sanitized(text: &str) -> String {
    text.replace(char::is_control, "\u{fffd}")
}

/// Prints a line. If nobody reads it any more, that is an error; with `println!` it is a panic.
pub(crate) fn line(text: impl Display) -> io::Result<()> {
    writeln!(io::stdout(), "{text}")
}

impl Output {
    /// Prints a table, as people or as programs like it.
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

    /// Says something to people; programs need no words.
    pub(crate) fn say(self, text: impl Display) -> io::Result<()> {
        match self.format {
            Format::Table => line(text),
            Format::Json => Ok(()),
        }
    }

    /// Tells people something about what is printed, on standard error: output that is piped to
    /// another program holds only the table. Programs that read JSON need no words.
    pub(crate) fn remark(self, text: impl Display) {
        if self.format == Format::Table {
            eprintln!("{text}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(&["TOPIC", "LAG", "CLIENT-ID"]);
        table.row(vec!["earthquakes".into(), 7.into(), Value::Null]);
        table.row(vec!["a".into(), 12345.into(), "me".into()]);
        table
    }

    #[test]
    fn columns_are_aligned_numbers_to_the_right() {
        let mut out = Vec::new();
        table().write(&mut out).expect("written to memory");
        let expected = "TOPIC          LAG  CLIENT-ID\n\
                        earthquakes      7  -\n\
                        a            12345  me\n";
        assert_eq!(String::from_utf8_lossy(&out), expected);
    }

    #[test]
    fn names_with_control_characters_do_not_leave_their_cells() {
        let mut table = Table::new(&["GROUP"]);
        table.row(vec!["a\x1b[2J\nb".into()]);
        let mut out = Vec::new();
        table.write(&mut out).expect("written to memory");
        assert_eq!(
            String::from_utf8_lossy(&out),
            "GROUP\na\u{fffd}[2J\u{fffd}b\n"
        );
        assert_eq!(table.to_json()[0]["group"], "a\x1b[2J\nb");
    }

    #[test]
    fn arrays_are_lists_in_a_table() {
        let mut table = Table::new(&["REPLICAS"]);
        table.row(vec![vec![1, 2].into()]);
        let mut out = Vec::new();
        table.write(&mut out).expect("written to memory");
        assert_eq!(String::from_utf8_lossy(&out), "REPLICAS\n1,2\n");
        assert_eq!(table.to_json()[0]["replicas"][1], 2);
    }

    #[test]
    fn json_has_the_headings_as_names() {
        let json = table().to_json();
        assert_eq!(json[0]["client_id"], Value::Null);
        assert_eq!(json[1]["lag"], 12345);
    }
}
