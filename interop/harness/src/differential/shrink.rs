//! A script that differs, made as short as it can be.

use std::time::{Duration, Instant};

use super::Pair;
use super::comparison::first_difference;
use super::play::Transcript;
use super::step::Script;
use crate::failure::Failure;

/// For how long shorter scripts are looked for.
const LIMIT: Duration = Duration::from_secs(30);

/// Leaves out steps as long as some difference remains. The script gets new seeds on the way, and
/// so groups and topics of its own each time. `None` if it does not differ when played again.
pub(super) fn shrink(
    pair: &Pair,
    script: &Script,
) -> Result<Option<(Script, [Transcript; 2])>, Failure> {
    let mut tries = 0;
    let mut attempt = |steps: &[super::step::Step]| -> Result<Option<_>, Failure> {
        tries += 1;
        let candidate = Script {
            steps: steps.to_vec(),
            ..script.again(tries)
        };
        let transcripts = pair.play(&candidate)?;
        Ok(first_difference(&candidate, &transcripts).map(|step| (step, transcripts)))
    };
    let mut steps = script.steps.clone();
    let Some((step, mut found)) = attempt(&steps)? else {
        return Ok(None);
    };
    steps.truncate(step + 1);
    let mut position = steps.len() - 1;
    let start = Instant::now();
    while position > 0 && start.elapsed() < LIMIT {
        position -= 1;
        let mut fewer = steps.clone();
        fewer.remove(position);
        if let Some((step, transcripts)) = attempt(&fewer)? {
            fewer.truncate(step + 1);
            position = position.min(fewer.len());
            steps = fewer;
            found = transcripts;
        }
    }
    let shortest = Script {
        steps,
        ..script.clone()
    };
    Ok(Some((shortest, found)))
}
