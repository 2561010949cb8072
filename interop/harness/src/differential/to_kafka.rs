//! State, the way back: Apache Kafka takes over the `__consumer_offsets` that kohort has written.
//!
//! Records of consumer groups name topics by their ids, and Kafka's controller gives out its own. So
//! the topics are created in Kafka first, and kohort begins with the same. Scripts fill it then, with
//! new partitions started and a group rewound, which leave records of kohort's own; its segments are
//! short and compacted. kohort is restarted, so that it too knows nothing but its log, and asked for
//! everything; Kafka is started on kohort's segments and asked the same, and the members go on.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use kohort_wire::messages::*;
use kohort_wire::{ByteString, ErrorCode, Uuid};
use serde_json::json;

use super::connection::{Connection, Received, decode};
use super::play::play_among;
use super::state::{Comparison, KAFKA_SETTINGS, Known, OFFSETS_TOPIC, describe, retried, topics};
use super::step::{Script, Step, Topic};
use super::{generate, settings};
use crate::broker::BrokerKind;
use crate::failure::Failure;
use crate::install::Toolchain;
use crate::report::Passed;
use crate::run::Run;
use crate::suites::Suite;
use crate::wait::wait_for;

const SCRIPTS: std::ops::Range<u64> = 3000..3040;
const LIMIT: Duration = Duration::from_secs(60);
const CLASSIC_GROUP: &str = "group-that-goes-on";
const REWOUND_GROUP: &str = "group-that-was-rewound";
const REWOUND_TOPIC: &str = "rewound";
const REWOUND_MEMBER: &str = "member-that-was-rewound";
/// Where it is rewound to: a topic without records has no other place.
const REWOUND_TO: i64 = 0;
/// What a partition's folder has of its records.
const FILES: [&str; 4] = ["log", "index", "timeindex", "snapshot"];
/// What Kafka says of kohort's own records.
const PASSED_OVER: &str = "Unknown record type 275";

const KOHORT_SETTINGS: &[(&str, &str)] = settings!(
    ("log.cleaner.backoff.ms", "200"),
    ("log.cleaner.min.cleanable.ratio", "0.01")
);

/// `state/to-kafka`
pub(crate) fn suite() -> Suite {
    Suite::new("state/to-kafka", &[Toolchain::Java], to_kafka)
}

fn to_kafka(run: &Run) -> Result<Passed, Failure> {
    let mut scripts: Vec<Script> = SCRIPTS.map(generate::script).collect();
    let wanted: Vec<_> = scripts.iter_mut().map(take_topics).collect();

    let mut kafka = run
        .against(BrokerKind::Kafka)
        .start_broker_with("kafka", KAFKA_SETTINGS)?;
    let mut connection = Connection::open(&kafka.address())?;
    let mut created = Vec::new();
    for (script, wanted) in scripts.iter().zip(&wanted) {
        created.push(create(&mut connection, script.seed, wanted)?);
    }
    create_topic(&mut connection, REWOUND_TOPIC, 1)?;
    retried(&mut connection, |connection| {
        let request = FindCoordinatorRequest {
            coordinator_keys: vec![CLASSIC_GROUP.into()],
            ..Default::default()
        };
        let answer = connection.ask(&request, 4)?.unwrap_or_default();
        let codes = answer.coordinators.iter().map(|it| it.error_code);
        Ok(codes.last().unwrap_or(ErrorCode::COORDINATOR_NOT_AVAILABLE))
    })?;
    let mut document = topics(&mut connection)?;
    // Large enough for the largest batch of a script: one that is larger than a segment is refused.
    document["topics"][OFFSETS_TOPIC]["configs"] = json!({"internal.segment.bytes": "16384"});
    kafka.stop()?;

    let folder = run.data().join("kohort");
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("kohort.json"), document.to_string())?;
    let mut kohort = run
        .against(BrokerKind::Kohort)
        .start_broker_with("kohort", KOHORT_SETTINGS)?;
    let address = kohort.address();
    std::thread::scope(|scope| {
        let mut players = Vec::new();
        for (script, topics) in scripts.iter().zip(created) {
            let address = &address;
            players.push(scope.spawn(move || play_among(script, topics, address)));
        }
        for player in players {
            let panicked = |_| Err(Failure::new("a player has panicked"));
            player.join().unwrap_or_else(panicked)?;
        }
        Ok::<_, Failure>(())
    })?;
    let mut connection = Connection::open(&address)?;
    let mut classic = Classic::join(&mut connection)?;
    rewind(&mut connection)?;
    let mut groups: Vec<String> = SCRIPTS.map(|seed| format!("group-{seed}")).collect();
    groups.extend([CLASSIC_GROUP, REWOUND_GROUP].map(str::to_owned));
    let before = describe_all(&mut connection, &groups)?;
    kohort.stop()?;
    kohort.start_again()?;
    let mut connection = Connection::open(&address)?;
    let known = describe_all(&mut connection, &groups)?;
    kohort.stop()?;
    for ((group, before), known) in groups.iter().zip(&before).zip(&known) {
        if before.offsets != known.offsets || before.members != known.members {
            return Err(Failure::new(format!(
                "{group} is another one after a restart of kohort: {:?}, before {:?}",
                known.answers, before.answers
            )));
        }
    }

    let logs = kafka.folder().join("logs");
    let segments = hand_over(kohort.folder(), &logs)?;
    kafka.start_again()?;
    let mut connection = Connection::open(&kafka.address())?;
    let mut comparison = Comparison::default();
    let found = describe_all(&mut connection, &groups)?;
    for ((group, known), found) in groups.iter().zip(&known).zip(&found) {
        comparison.answers(group, found, known);
        comparison.members(&mut connection, group, known)?;
    }
    if let Some(error) = classic.go_on(&mut connection)? {
        let text = format!("\n{CLASSIC_GROUP} cannot go on: {error}");
        comparison.different.push_str(&text);
    }
    let Comparison {
        members, offsets, ..
    } = comparison.finish("Kafka")?;
    // Going on made nobody rebalance: Kafka takes the topics for those that kohort assigned.
    for (group, known) in groups.iter().zip(&known) {
        let epoch = describe(&mut connection, group)?.epoch;
        if epoch != known.epoch {
            let before = known.epoch;
            return Err(Failure::new(format!(
                "{group}: epoch {epoch:?} after {before:?}"
            )));
        }
    }
    kafka.stop()?;
    let passed_over = passed_over(run.logs())?;
    if passed_over == 0 {
        return Err(Failure::new("Kafka has met no record of kohort's own"));
    }
    Ok(Passed::note(format!(
        "{} groups with {offsets} offsets from {segments} segments; {members} consumer members and \
         a classic one went on; {passed_over} records of kohort's own passed over",
        groups.len()
    )))
}

/// Describes groups when all coordinators are there, which lists need.
fn describe_all(connection: &mut Connection, groups: &[String]) -> Result<Vec<Known>, Failure> {
    for group in groups {
        describe(connection, group)?;
    }
    groups.iter().map(|it| describe(connection, it)).collect()
}

/// Takes what changes topics out of a script: the topics that it needs, as large as they become.
fn take_topics(script: &mut Script) -> BTreeMap<Topic, i32> {
    let mut topics: BTreeMap<Topic, i32> = BTreeMap::new();
    script.steps.retain(|step| match step {
        Step::CreateTopic { topic, partitions } | Step::GrowTopic { topic, partitions } => {
            let size = topics.entry(*topic).or_default();
            *size = (*size).max(*partitions);
            false
        }
        Step::DeleteTopic { .. } | Step::DeleteGroup { .. } => false,
        _ => true,
    });
    topics
}

fn create(
    connection: &mut Connection,
    seed: u64,
    wanted: &BTreeMap<Topic, i32>,
) -> Result<BTreeMap<Topic, (Uuid, i32)>, Failure> {
    let mut created = BTreeMap::new();
    for (&topic, &partitions) in wanted {
        let name = format!("topic-{seed}-{topic}");
        let id = create_topic(connection, &name, partitions)?;
        created.insert(topic, (id, partitions));
    }
    Ok(created)
}

fn create_topic(connection: &mut Connection, name: &str, partitions: i32) -> Result<Uuid, Failure> {
    let request = CreateTopicsRequest {
        timeout_ms: 30_000,
        topics: vec![CreatableTopic {
            name: name.into(),
            num_partitions: partitions,
            replication_factor: 1,
            ..Default::default()
        }],
        ..Default::default()
    };
    let answer = connection.ask(&request, 7)?.unwrap_or_default();
    match answer.topics.first() {
        Some(topic) if !topic.error_code.is_error() => Ok(topic.topic_id),
        other => Err(Failure::new(format!("{name} is not created: {other:?}"))),
    }
}

/// A member of a classic group, alone in it.
struct Classic {
    member_id: ByteString,
    generation: i32,
}

impl Classic {
    fn join(connection: &mut Connection) -> Result<Self, Failure> {
        let mut member_id = ByteString::new();
        let joined = loop {
            let request = JoinGroupRequest {
                group_id: CLASSIC_GROUP.into(),
                session_timeout_ms: 300_000,
                rebalance_timeout_ms: 300_000,
                member_id: member_id.clone(),
                protocol_type: "other".into(),
                protocols: vec![JoinGroupProtocol {
                    name: "plain".into(),
                    metadata: Bytes::from_static(b"metadata"),
                }],
                ..Default::default()
            };
            let joined = connection.ask(&request, 9)?.unwrap_or_default();
            match joined.error_code {
                ErrorCode::NONE => break joined,
                ErrorCode::MEMBER_ID_REQUIRED if member_id.is_empty() => {
                    member_id = joined.member_id;
                }
                code => return Err(Failure::new(format!("joining {CLASSIC_GROUP}: {code}"))),
            }
        };
        let request = SyncGroupRequest {
            group_id: CLASSIC_GROUP.into(),
            generation_id: joined.generation_id,
            member_id: joined.member_id.clone(),
            protocol_type: Some("other".into()),
            protocol_name: Some("plain".into()),
            assignments: vec![SyncGroupAssignment {
                member_id: joined.member_id.clone(),
                assignment: Bytes::from_static(b"assignment"),
            }],
            ..Default::default()
        };
        let synced = connection.ask(&request, 5)?.unwrap_or_default();
        if synced.error_code.is_error() {
            let code = synced.error_code;
            return Err(Failure::new(format!("syncing {CLASSIC_GROUP}: {code}")));
        }
        Ok(Self {
            member_id: joined.member_id,
            generation: joined.generation_id,
        })
    }

    /// A heartbeat of the generation that kohort gave, and the error if it is refused.
    fn go_on(&mut self, connection: &mut Connection) -> Result<Option<ErrorCode>, Failure> {
        let request = HeartbeatRequest {
            group_id: CLASSIC_GROUP.into(),
            generation_id: self.generation,
            member_id: self.member_id.clone(),
            ..Default::default()
        };
        let answer = connection.ask(&request, 4)?.unwrap_or_default();
        Ok(Some(answer.error_code).filter(|code| code.is_error()))
    }
}

/// A group with one member, whose partition is rewound while it is at work.
fn rewind(connection: &mut Connection) -> Result<(), Failure> {
    let mut epoch = 0;
    let mut owned: Vec<TopicIdPartitions> = Vec::new();
    until_owned(connection, &mut epoch, &mut owned)?;
    let mut administrator = Connection::open(&connection.peer()?)?;
    let request = OffsetCommitRequest {
        group_id: REWOUND_GROUP.into(),
        topics: vec![OffsetCommitRequestTopic {
            name: REWOUND_TOPIC.into(),
            partitions: vec![OffsetCommitRequestPartition {
                partition_index: 0,
                committed_offset: REWOUND_TO,
                committed_metadata: Some("kohort:rewind".into()),
                ..Default::default()
            }],
            ..Default::default()
        }],
        ..Default::default()
    };
    administrator.send(&request, 9)?;
    wait_for("the rewind", LIMIT, || {
        heartbeat(connection, &mut epoch, &mut owned)?;
        match administrator.receive(Duration::from_millis(5))? {
            Received::NotYet => Ok(None),
            Received::Closed => Err(Failure::new("the rewind is not answered")),
            Received::Frame(frame) => {
                let answer = decode::<OffsetCommitRequest>(frame, 9)?;
                let partitions = answer.topics.iter().flat_map(|it| &it.partitions);
                match partitions.map(|it| it.error_code).next() {
                    Some(ErrorCode::NONE) => Ok(Some(())),
                    other => Err(Failure::new(format!("the rewind is refused: {other:?}"))),
                }
            }
        }
    })?;
    until_owned(connection, &mut epoch, &mut owned)
}

fn until_owned(
    connection: &mut Connection,
    epoch: &mut i32,
    owned: &mut Vec<TopicIdPartitions>,
) -> Result<(), Failure> {
    wait_for("a member with its partition", LIMIT, || {
        heartbeat(connection, epoch, owned)?;
        Ok((!owned.is_empty()).then_some(()))
    })
}

fn heartbeat(
    connection: &mut Connection,
    epoch: &mut i32,
    owned: &mut Vec<TopicIdPartitions>,
) -> Result<(), Failure> {
    let joins = *epoch == 0;
    let request = ConsumerGroupHeartbeatRequest {
        group_id: REWOUND_GROUP.into(),
        member_id: REWOUND_MEMBER.into(),
        member_epoch: *epoch,
        rebalance_timeout_ms: if joins { 300_000 } else { -1 },
        subscribed_topic_names: joins.then(|| vec![REWOUND_TOPIC.into()]),
        topic_partitions: Some(owned.clone()),
        ..Default::default()
    };
    let answer = connection.ask(&request, 1)?.unwrap_or_default();
    if answer.error_code.is_error() {
        let code = answer.error_code;
        return Err(Failure::new(format!(
            "a heartbeat in {REWOUND_GROUP}: {code}"
        )));
    }
    *epoch = answer.member_epoch;
    if let Some(assignment) = answer.assignment {
        *owned = assignment.topic_partitions;
    }
    Ok(())
}

/// Puts kohort's segments in the place of Kafka's; how many there are. Kafka looks through all of
/// them when it starts, as after a crash.
fn hand_over(from: &Path, to: &Path) -> Result<usize, Failure> {
    let is_of_records = |path: &Path| {
        let extension = path.extension().unwrap_or_default().to_string_lossy();
        FILES.contains(&&*extension)
    };
    let mut segments = 0;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        if !entry
            .file_name()
            .to_string_lossy()
            .starts_with(OFFSETS_TOPIC)
        {
            continue;
        }
        let folder = to.join(entry.file_name());
        for file in fs::read_dir(&folder)? {
            let path = file?.path();
            if is_of_records(&path) {
                fs::remove_file(path)?;
            }
        }
        for file in fs::read_dir(entry.path())? {
            let path = file?.path();
            if is_of_records(&path) {
                segments += usize::from(path.extension().is_some_and(|it| it == "log"));
                fs::copy(&path, folder.join(path.file_name().unwrap_or_default()))?;
            }
        }
    }
    fs::remove_file(to.join(".kafka_cleanshutdown"))?;
    Ok(segments)
}

/// How many records of kohort's own Kafka says that it has passed over.
fn passed_over(logs: &Path) -> Result<usize, Failure> {
    let mut count = 0;
    for entry in fs::read_dir(logs)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with("kafka") {
            let text = String::from_utf8_lossy(&fs::read(entry.path())?).into_owned();
            count += text.matches(PASSED_OVER).count();
        }
    }
    Ok(count)
}
