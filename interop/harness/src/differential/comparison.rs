//! What two brokers answered to one script, side by side.

use super::differences::{self, Asked, Difference};
use super::play::Transcript;
use super::step::Script;

/// What comparing two transcripts came to.
pub(super) struct Comparison {
    /// The first step whose answers differ, and are not meant to
    pub(super) differs_at: Option<usize>,
    /// The differences that are meant, as often as they were met
    pub(super) meant: Vec<&'static Difference>,
}

pub(super) fn compared(script: &Script, [kafka, kohort]: &[Transcript; 2]) -> Comparison {
    let mut comparison = Comparison {
        differs_at: None,
        meant: Vec::new(),
    };
    let nothing = Vec::new();
    for (index, step) in script.steps.iter().enumerate() {
        let kafka = kafka.get(index).unwrap_or(&nothing);
        let kohort = kohort.get(index).unwrap_or(&nothing);
        if kafka == kohort {
            continue;
        }
        let before = &script.steps[..index];
        let Some(difference) = differences::meant(&Asked { step, before }, kafka, kohort) else {
            comparison.differs_at = Some(index);
            break;
        };
        comparison.meant.push(difference);
        if !difference.passes {
            break;
        }
    }
    comparison
}

pub(super) fn first_difference(script: &Script, transcripts: &[Transcript; 2]) -> Option<usize> {
    compared(script, transcripts).differs_at
}

/// The script with its answers, up to the first that differs; there, both.
pub(super) fn side_by_side(script: &Script, transcripts: &[Transcript; 2], all: bool) -> String {
    let different = first_difference(script, transcripts);
    let mut text = String::new();
    for (index, step) in script.steps.iter().enumerate() {
        text.push_str(&format!("  {index:2} {step:?}\n"));
        let [kafka, kohort] = transcripts.each_ref().map(|one| one.get(index).cloned());
        let (kafka, kohort) = (kafka.unwrap_or_default(), kohort.unwrap_or_default());
        if kafka == kohort {
            for line in kafka {
                text.push_str(&format!("              {line}\n"));
            }
        } else {
            let before = &script.steps[..index];
            let asked = Asked { step, before };
            if let Some(difference) = differences::meant(&asked, &kafka, &kohort) {
                let Difference { name, reason, .. } = difference;
                text.push_str(&format!("              meant, {name}: {reason}\n"));
            }
            for (name, lines) in [("kafka", kafka), ("kohort", kohort)] {
                for line in lines {
                    text.push_str(&format!("     {name:>7}: {line}\n"));
                }
            }
        }
        if different == Some(index) && !all {
            break;
        }
    }
    text
}
