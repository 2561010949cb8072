//! Shows the group: in place on a terminal, as lines elsewhere.

use std::{
    fmt::Write as _,
    io::{self, IsTerminal, Write as _},
    time::Duration,
};

use super::{
    GROUP,
    ledger::{Partition, View},
};
use crate::output::line;

/// How many of the last events stay on the screen.
const EVENTS_SHOWN: usize = 6;
/// How wide the bar of a partition is.
const BAR: usize = 30;

/// Shows the group.
pub(super) struct Screen {
    in_place: bool,
    /// How many lines were drawn last.
    drawn: usize,
    events_printed: usize,
    next_line_at: Duration,
}

impl Screen {
    pub(super) fn new(lines: bool, address: &str) -> io::Result<Screen> {
        line(format_args!(
            "A week of earthquakes (USGS, February 2018) in a few seconds, on a broker at {address}."
        ))?;
        line(
            "Three consumers share six partitions; one more joins, one is killed, one partition is \
             rewound.\n",
        )?;
        Ok(Screen {
            in_place: !lines && io::stdout().is_terminal(),
            drawn: 0,
            events_printed: 0,
            next_line_at: Duration::ZERO,
        })
    }

    pub(super) fn draw(&mut self, view: &View) -> io::Result<()> {
        if self.in_place {
            self.draw_in_place(view)
        } else {
            self.print_lines(view)
        }
    }

    /// Ends the drawing, and says what the group's history tells.
    pub(super) fn finish(&mut self, explanation: &[String]) -> io::Result<()> {
        line("")?;
        if explanation.is_empty() {
            return Ok(());
        }
        line(format_args!(
            "Why the group rebalanced when it was rewound (kohort groups history {GROUP}):"
        ))?;
        for text in explanation {
            line(format_args!("  {text}"))?;
        }
        line("")
    }

    fn draw_in_place(&mut self, view: &View) -> io::Result<()> {
        let mut lines = vec![summary(view), String::new()];
        lines.extend(
            (0..)
                .zip(&view.partitions)
                .map(|(number, p)| bar(number, p, view)),
        );
        lines.push(String::new());
        lines.push(members(view));
        if let Some((magnitude, place)) = &view.strongest {
            lines.push(format!(
                "strongest so far: magnitude {magnitude:.1}, {place}"
            ));
        }
        lines.push(String::new());
        let first = view.events.len().saturating_sub(EVENTS_SHOWN);
        lines.extend(view.events[first..].iter().map(event));
        let width = width();
        let mut out = String::new();
        if self.drawn > 0 {
            // Back up to where the drawing began.
            let _ = write!(out, "\x1b[{}A", self.drawn);
        }
        for text in &lines {
            let text: String = text.chars().take(width).collect();
            let _ = writeln!(out, "\x1b[2K{text}");
        }
        // What an earlier, longer drawing left below.
        out.push_str("\x1b[J");
        self.drawn = lines.len();
        let mut stdout = io::stdout().lock();
        stdout.write_all(out.as_bytes())?;
        stdout.flush()
    }

    fn print_lines(&mut self, view: &View) -> io::Result<()> {
        for one in &view.events[self.events_printed..] {
            line(event(one))?;
        }
        self.events_printed = view.events.len();
        if view.elapsed >= self.next_line_at {
            self.next_line_at = view.elapsed + Duration::from_secs(1);
            let partitions = (0..)
                .zip(&view.partitions)
                .map(|(number, partition): (i32, _)| {
                    let owner = partition.owner.unwrap_or("-");
                    format!("{number} {owner} {}/{}", partition.position, partition.end)
                });
            line(format_args!(
                "{}   {}",
                summary(view),
                partitions.collect::<Vec<_>>().join("  ")
            ))?;
        }
        Ok(())
    }
}

fn summary(view: &View) -> String {
    let written: i64 = view.partitions.iter().map(|partition| partition.end).sum();
    let processed: i64 = view
        .partitions
        .iter()
        .map(|partition| partition.position)
        .sum();
    format!(
        "{:5.1} s  written {written:4}  processed {processed:4}",
        view.elapsed.as_secs_f64()
    )
}

fn bar(number: i32, partition: &Partition, view: &View) -> String {
    // All bars to one scale, so that they can be compared.
    let longest = view
        .partitions
        .iter()
        .map(|p| p.end)
        .max()
        .unwrap_or_default()
        .max(1);
    let cells = |count: i64| (count.max(0) as usize * BAR) / longest as usize;
    let (done, all) = (cells(partition.position), cells(partition.end));
    let bar = format!(
        "{}{}",
        "█".repeat(done),
        "░".repeat(all.saturating_sub(done))
    );
    let owner = match partition.owner {
        Some(name) if is_killed(name, view) => format!("{name} †"),
        Some(name) => name.to_owned(),
        None => "-".to_owned(),
    };
    format!(
        "partition {number}  {owner:<8}  {bar:<BAR$}  {}/{}",
        partition.position, partition.end
    )
}

fn is_killed(name: &str, view: &View) -> bool {
    view.members
        .iter()
        .any(|(member, count)| *member == name && count.is_killed)
}

fn members(view: &View) -> String {
    let members = view.members.iter().map(|(name, count)| {
        let mark = if count.is_killed { " †" } else { "" };
        format!("{name}{mark} {}", count.records)
    });
    format!(
        "records by member: {}",
        members.collect::<Vec<_>>().join("   ")
    )
}

fn event((at, text): &(Duration, String)) -> String {
    format!("{:5.1} s  {text}", at.as_secs_f64())
}

fn width() -> usize {
    let size = rustix::termios::tcgetwinsize(io::stdout());
    size.map(|size| usize::from(size.ws_col))
        .ok()
        .filter(|&width| width > 0)
        .unwrap_or(80)
}
