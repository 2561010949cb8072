//! `kohort demo`: a week of earthquakes, a broker, and a group that shares them out.
//!
//! Everything is real: the broker is the one that `kohort serve` runs, the members are ordinary
//! consumers with a runtime of their own each, and killing one means that its runtime is gone from
//! one moment to the next, as if its process had been killed.

mod data;
mod ledger;
mod member;
mod operator;
mod replay;
mod screen;

use std::{sync::Arc, time::Duration};

use clap::Args;
use kohort::{Admin, ClientConfig, TopicPartition, admin::NewTopic};
use kohort_broker::Broker;
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep, sleep_until},
};

use crate::{failure::Failure, signals::Signals};
use ledger::Ledger;
use member::Member;
use screen::Screen;

const TOPIC: &str = "earthquakes";
const GROUP: &str = "observatory";
const PARTITIONS: i32 = 6;

/// How long the week takes.
const REPLAY: Duration = Duration::from_secs(9);
/// When the fourth member joins.
const JOIN_AT: Duration = Duration::from_millis(2_500);
/// When one is killed.
const KILL_AT: Duration = Duration::from_millis(5_000);
/// When an operator rewinds a partition, if the group has recovered by then.
const REWIND_AT: Duration = Duration::from_millis(7_800);
/// When the demo gives up.
const GIVE_UP_AT: Duration = Duration::from_secs(19);
/// How often the screen is drawn.
const FRAME: Duration = Duration::from_millis(100);

/// Show a group at work, in less than 20 seconds
///
/// On an embedded broker, a week of earthquakes goes through a topic whose partitions the members of
/// a group share. One member joins, one is killed, and a partition is rewound while they run.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  kohort demo
  kohort demo --lines | tee demo.log")]
pub(crate) struct Demo {
    /// Print lines instead of drawing in place (default when piped)
    #[arg(long)]
    lines: bool,
}

impl Demo {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let mut signals = Signals::new()?;
        let folder = tempfile::tempdir()
            .map_err(|error| Failure::new(format!("cannot make a temporary folder: {error}")))?;
        let broker = Broker::builder()
            .data_dir(folder.path())
            // The defaults are meant for networks and for hours; this is to be watched.
            .set("group.consumer.min.session.timeout.ms", "1000")
            .set("group.consumer.session.timeout.ms", "2000")
            .set("group.consumer.min.heartbeat.interval.ms", "100")
            .set("group.consumer.heartbeat.interval.ms", "250")
            .set("group.consumer.assignment.interval.ms", "0")
            .start()
            .await
            .map_err(|error| Failure::new(error.to_string()))?;
        let address = broker.address().to_string();
        let shown = tokio::select! {
            shown = show(&address, self.lines) => shown,
            () = signals.next() => Err(Failure::new("interrupted")),
        };
        broker.shutdown().await;
        shown
    }
}

async fn show(address: &str, lines: bool) -> Result<(), Failure> {
    let quakes = data::quakes()?;
    let ledger = Arc::new(Ledger::new(quakes.len()));
    let admin = Admin::connect(ClientConfig::new(address)).await?;
    // The records have the times of 2018, which must not make them expire.
    let topic = NewTopic::new(TOPIC, PARTITIONS).config("retention.ms", "-1");
    admin.create_topic(&topic).await?;

    let mut screen = Screen::new(lines, address)?;
    let began = ledger.began();
    let replay = tokio::spawn(replay::replay(
        address.to_owned(),
        quakes,
        ledger.clone(),
        REPLAY,
    ));
    let start = |name| Member::start(name, address, ledger.clone());
    let mut members = vec![start("anna")?, start("ben")?, start("carla")?];
    let mut next_frame = Instant::now();
    let (mut has_joined, mut has_killed) = (false, false);
    let mut rewind = None;
    let is_rewound =
        |rewind: &Option<JoinHandle<_>>| rewind.as_ref().is_some_and(|r| r.is_finished());
    while !(replay.is_finished() && is_rewound(&rewind) && ledger.is_complete()) {
        let elapsed = began.elapsed();
        if !has_joined && elapsed >= JOIN_AT {
            has_joined = true;
            ledger.event("dora joins the group");
            members.push(start("dora")?);
        }
        if !has_killed && elapsed >= KILL_AT {
            has_killed = true;
            let busiest = ledger.busiest();
            if let Some(at) = members
                .iter()
                .position(|member| Some(member.name()) == busiest)
            {
                let member = members.remove(at);
                ledger.kill(member.name());
                member.kill();
            }
        }
        if rewind.is_none() && elapsed >= REWIND_AT && ledger.has_recovered() {
            rewind = Some(tokio::spawn(operator::rewind(
                admin.clone(),
                ledger.clone(),
            )));
        }
        if let Some(failure) = ledger.failure() {
            return Err(Failure::new(failure));
        }
        if elapsed >= GIVE_UP_AT {
            break;
        }
        screen.draw(&ledger.view())?;
        next_frame += FRAME;
        sleep_until(next_frame).await;
    }
    replay
        .await
        .map_err(|error| Failure::new(error.to_string()))??;
    // A last look before the members leave and own nothing any more.
    sleep(FRAME).await;
    screen.draw(&ledger.view())?;
    let explanation = operator::explanation(&admin).await?;
    for member in members {
        member.stop().await?;
    }
    let committed = committed(&admin).await?;
    screen.finish(&explanation)?;
    ledger.report(&committed)
}

/// What the group has committed, by partition.
async fn committed(admin: &Admin) -> Result<Vec<Option<i64>>, Failure> {
    let partitions: Vec<_> = (0..PARTITIONS)
        .map(|p| TopicPartition::new(TOPIC, p))
        .collect();
    let mut committed = vec![None; partitions.len()];
    for (partition, offset) in admin.list_group_offsets(GROUP, Some(&partitions)).await? {
        if let Some(place) = committed.get_mut(partition.partition as usize) {
            *place = offset?.map(|committed| committed.offset);
        }
    }
    Ok(committed)
}
