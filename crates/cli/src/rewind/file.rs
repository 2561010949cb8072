//! Offsets in a file: `topic,partition,offset` in each line, as kafka-consumer-groups writes them
//! with --export.

use std::{fmt::Write, fs, path::Path};

use kohort::{
    TopicPartition,
    admin::{RewindStep, RewindTo},
};

use crate::failure::Failure;

pub(super) fn read(path: &Path) -> Result<Vec<(TopicPartition, RewindTo)>, Failure> {
    let text = fs::read_to_string(path)
        .map_err(|error| Failure::new(format!("{}: {error}", path.display())))?;
    let lines = text.lines().enumerate();
    let lines = lines.filter(|(_, line)| !line.trim().is_empty());
    let goals = lines.map(|(index, line)| {
        goal(line).ok_or_else(|| {
            Failure::new(format!(
                "{}, line {}: {line:?} is not topic,partition,offset",
                path.display(),
                index + 1
            ))
        })
    });
    goals.collect()
}

fn goal(line: &str) -> Option<(TopicPartition, RewindTo)> {
    let mut cells = line.split(',').map(|cell| cell.trim().trim_matches('"'));
    let (topic, partition, offset) = (cells.next()?, cells.next()?, cells.next()?);
    let partition = partition.parse().ok().filter(|&index: &i32| index >= 0)?;
    let offset = offset.parse().ok().filter(|&offset: &i64| offset >= 0)?;
    if topic.is_empty() || cells.next().is_some() {
        None
    } else {
        Some((
            TopicPartition::new(topic, partition),
            RewindTo::Offset(offset),
        ))
    }
}

/// Writes what is committed. Partitions for which nothing is are left out.
pub(super) fn write(path: &Path, steps: &[RewindStep]) -> Result<(), Failure> {
    let mut text = String::new();
    for step in steps {
        if let Some(before) = &step.before {
            let TopicPartition { topic, partition } = &step.partition;
            let _ = writeln!(text, "{topic},{partition},{}", before.offset);
        }
    }
    fs::write(path, text).map_err(|error| Failure::new(format!("{}: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_may_be_quoted_as_kafkas_tool_writes_them() {
        let expected = Some((TopicPartition::new("orders", 3), RewindTo::Offset(17)));
        assert_eq!(goal("orders,3,17"), expected);
        assert_eq!(goal("\"orders\",\"3\", \"17\""), expected);
        for wrong in [
            "orders,3",
            "orders,3,-1",
            "orders,x,1",
            ",3,17",
            "orders,3,17,4",
        ] {
            assert_eq!(goal(wrong), None, "{wrong}");
        }
    }
}
