//! What an operator does meanwhile: rewinds a partition, and asks why the group rebalanced.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use kohort::{
    Admin, TopicPartition,
    admin::RewindTo,
    history::{Event, Timeline, What},
};
use tokio::time::{Instant, timeout_at};

use super::{GROUP, TOPIC, ledger::Ledger};

/// How long to wait for the end of the story.
const STORY: Duration = Duration::from_secs(1);

/// Rewinds the partition that has the most records to its first one, while the group runs.
pub(super) async fn rewind(admin: Admin, ledger: Arc<Ledger>) {
    let number = ledger.longest();
    ledger.event(format!(
        "an operator rewinds partition {number} to its first record, while the group runs"
    ));
    let partition = TopicPartition::new(TOPIC, number);
    match admin
        .rewind_group(GROUP, &[(partition, RewindTo::Earliest)])
        .await
    {
        Ok(steps) => {
            let before = steps.first().and_then(|step| step.before.as_ref());
            ledger.rewound(number, before.map_or(0, |before| before.offset));
        }
        Err(error) => ledger.fail(format!("the rewind failed: {error}")),
    }
}

/// What the group's history says of the rewind, from the request to the calm after it.
pub(super) async fn explanation(admin: &Admin) -> kohort::Result<Vec<String>> {
    let Some(mut reader) = admin.group_events(GROUP, 0).await? else {
        return Ok(Vec::new());
    };
    let mut events = reader.so_far().await?;
    let give_up_at = Instant::now() + STORY;
    while story(&events).is_none() {
        match timeout_at(give_up_at, reader.next_within(STORY)).await {
            Ok(more) => events.extend(more?),
            Err(_) => break,
        }
    }
    let mut timeline = Timeline::new(clock);
    let lines = story(&events).unwrap_or_default().iter();
    Ok(lines.map(|event| timeline.line(event)).collect())
}

/// The events of the rewind; `None` if it has not come to its end.
fn story(events: &[Event]) -> Option<&[Event]> {
    let begins = |event: &Event| matches!(event.what, What::RewindAsked { .. });
    let ends = |event: &Event| matches!(event.what, What::Stable { .. });
    let happened = |event: &Event| matches!(event.what, What::Rewound { .. });
    let story = &events[events.iter().position(begins)?..];
    let rewound = story.iter().position(happened)?;
    let end = rewound + story[rewound..].iter().position(ends)?;
    Some(&story[..=end])
}

fn clock(at_ms: i64) -> String {
    match Timestamp::from_millisecond(at_ms) {
        Ok(time) => time.strftime("%H:%M:%SZ").to_string(),
        Err(_) => format!("{at_ms} ms"),
    }
}
