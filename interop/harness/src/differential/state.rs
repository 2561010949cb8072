//! State: kohort takes over the `__consumer_offsets` that Apache Kafka has written.
//!
//! Scripts fill Kafka with groups of both protocols; its log is rolled and compacted meanwhile, and
//! has offsets of a transaction that was committed and of one that was not. Kafka is restarted, so
//! that it too knows nothing but its log, and asked for everything; then kohort is started on a copy
//! of the log and asked the same, and the members of consumer groups go on with their epochs.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use kohort_wire::messages::*;
use kohort_wire::{ByteString, ErrorCode};
use serde_json::json;

use super::connection::Connection;
use super::differences::Asked;
use super::normal::Names;
use super::play::play;
use super::step::Step;
use super::{KOHORT_SETTINGS, differences, generate, settings};
use crate::broker::BrokerKind;
use crate::failure::Failure;
use crate::install::Toolchain;
use crate::report::Passed;
use crate::run::Run;
use crate::suites::Suite;

const SCRIPTS: std::ops::Range<u64> = 2000..2040;
/// For a coordinator to load its log.
const LOAD_LIMIT: Duration = Duration::from_secs(60);
pub(super) const OFFSETS_TOPIC: &str = "__consumer_offsets";
const TRANSACTION_GROUP: &str = "group-of-a-transaction";

/// Short segments that are compacted soon, beside what every Kafka under these tests has.
pub(super) const KAFKA_SETTINGS: &[(&str, &str)] = settings!(
    ("group.consumer.assignor.offload.enable", "false"),
    ("group.coordinator.append.linger.ms", "0"),
    ("broker.session.timeout.ms", "120000"),
    // A segment is rolled for its age: Kafka takes no smaller size than 1 MiB.
    ("log.roll.ms", "1500"),
    ("log.cleaner.min.cleanable.ratio", "0.01"),
    ("log.cleaner.backoff.ms", "500"),
    ("transaction.state.log.num.partitions", "1")
);

/// `state/from-kafka`
pub(crate) fn suite() -> Suite {
    Suite::new("state/from-kafka", &[Toolchain::Java], from_kafka)
}

fn from_kafka(run: &Run) -> Result<Passed, Failure> {
    let mut kafka = run
        .against(BrokerKind::Kafka)
        .start_broker_with("kafka", KAFKA_SETTINGS)?;
    std::thread::scope(|scope| {
        let mut players = Vec::new();
        for start in SCRIPTS.start..SCRIPTS.start + 8 {
            let address = kafka.address();
            players.push(scope.spawn(move || {
                for seed in (start..SCRIPTS.end).step_by(8) {
                    let mut script = generate::script(seed);
                    script
                        .steps
                        .retain(|step| !matches!(step, Step::DeleteGroup { .. }));
                    play(&script, &address)?;
                }
                Ok(())
            }));
        }
        let panicked = |_| Err(Failure::new("a player has panicked"));
        let played = players
            .into_iter()
            .map(|it| it.join().unwrap_or_else(panicked));
        played.collect::<Result<(), Failure>>()
    })?;
    commit_in_transactions(&kafka.address())?;

    kafka.stop()?;
    kafka.start_again()?;
    let mut connection = Connection::open(&kafka.address())?;
    let mut groups: Vec<String> = SCRIPTS.map(|seed| format!("group-{seed}")).collect();
    groups.push(TRANSACTION_GROUP.to_owned());
    for group in &groups {
        // Some coordinators are loaded sooner than others, and lists need them all.
        describe(&mut connection, group)?;
    }
    let mut known = Vec::new();
    for group in &groups {
        known.push(describe(&mut connection, group)?);
    }
    let topics = topics(&mut connection)?;
    kafka.stop()?;

    let folder = run.data().join("kohort");
    let segments = take_over(&kafka.folder().join("logs"), &folder, &topics)?;
    let kohort = run
        .against(BrokerKind::Kohort)
        .start_broker_with("kohort", KOHORT_SETTINGS)?;
    let mut connection = Connection::open(&kohort.address())?;
    let mut comparison = Comparison::default();
    for (group, known) in groups.iter().zip(&known) {
        let found = describe(&mut connection, group)?;
        comparison.answers(group, known, &found);
        comparison.members(&mut connection, group, known)?;
    }
    let Comparison {
        members, offsets, ..
    } = comparison.finish("kohort")?;
    Ok(Passed::note(format!(
        "{} groups with {offsets} offsets from {segments} segments; {members} consumer members \
         went on",
        groups.len()
    )))
}

/// What a broker makes of groups that the other has kept.
#[derive(Default)]
pub(super) struct Comparison {
    pub(super) different: String,
    pub(super) members: usize,
    pub(super) offsets: usize,
}

impl Comparison {
    /// Takes in what both say of a group.
    pub(super) fn answers(&mut self, group: &str, kafka: &Known, kohort: &Known) {
        for ((step, kafka), (_, kohort)) in kafka.answers.iter().zip(&kohort.answers) {
            let (kafka, kohort) = (std::slice::from_ref(kafka), std::slice::from_ref(kohort));
            let asked = Asked { step, before: &[] };
            if kafka != kohort && differences::meant(&asked, kafka, kohort).is_none() {
                let (kafka, kohort) = (&kafka[0], &kohort[0]);
                self.different
                    .push_str(&format!("\n{group}\n  kafka:  {kafka}\n  kohort: {kohort}"));
            }
        }
    }

    /// Lets the members of a group go on with what they were told before.
    pub(super) fn members(
        &mut self,
        connection: &mut Connection,
        group: &str,
        known: &Known,
    ) -> Result<(), Failure> {
        self.offsets += known.offsets;
        for member in &known.members {
            self.members += 1;
            if let Some(error) = go_on(connection, group, member)? {
                let id = &member.member_id;
                self.different
                    .push_str(&format!("\n{group}: member {id} cannot go on: {error}"));
            }
        }
        Ok(())
    }

    /// A failure if `reader` has read anything else than was written.
    pub(super) fn finish(self, reader: &str) -> Result<Self, Failure> {
        if self.different.is_empty() {
            Ok(self)
        } else {
            Err(Failure::new(format!(
                "{reader} has read something else{}",
                self.different
            )))
        }
    }
}

/// What a broker says of a group.
pub(super) struct Known {
    pub(super) answers: Vec<(Step, String)>,
    pub(super) members: Vec<DescribedConsumerGroupMember>,
    pub(super) offsets: usize,
    /// The epoch of a consumer group.
    pub(super) epoch: Option<i32>,
}

pub(super) fn describe(connection: &mut Connection, group: &str) -> Result<Known, Failure> {
    let names = Names {
        is_raw: true,
        exact: true,
        group: group.to_owned(),
        ..Names::default()
    };
    let closed = || Failure::new("the broker closed the connection");
    let deadline = Instant::now() + LOAD_LIMIT;
    let fetched = loop {
        let request = OffsetFetchRequest {
            groups: vec![OffsetFetchRequestGroup {
                group_id: group.into(),
                topics: None,
                ..Default::default()
            }],
            ..Default::default()
        };
        let answer = connection.ask(&request, 9)?.ok_or_else(closed)?;
        let loaded = answer
            .groups
            .iter()
            .all(|group| !group.error_code.is_retriable());
        if loaded || Instant::now() > deadline {
            break answer;
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    let request = DescribeGroupsRequest {
        groups: vec![group.into()],
        ..Default::default()
    };
    let classic = connection.ask(&request, 6)?.ok_or_else(closed)?;
    let request = ConsumerGroupDescribeRequest {
        group_ids: vec![group.into()],
        ..Default::default()
    };
    let consumer = connection.ask(&request, 1)?.ok_or_else(closed)?;
    let request = ListGroupsRequest::default();
    let listed = connection.ask(&request, 5)?.ok_or_else(closed)?;
    let offsets = fetched.groups.iter().flat_map(|group| &group.topics);
    let offsets = offsets.map(|topic| topic.partitions.len()).sum();
    let members = consumer
        .groups
        .iter()
        .flat_map(|group| group.members.clone());
    let members = members.filter(|member| member.member_type == 1).collect();
    let mut described = consumer.groups.iter();
    let epoch = described.find(|it| !it.error_code.is_error());
    let epoch = epoch.map(|group| group.group_epoch);
    let list = Step::ListGroups {
        version: 5,
        states: Vec::new(),
        types: Vec::new(),
    };
    Ok(Known {
        members,
        offsets,
        epoch,
        answers: vec![
            (Step::DescribeGroup { version: 6 }, names.text(classic)),
            (
                Step::DescribeConsumerGroup { version: 1 },
                names.text(consumer),
            ),
            (list, names.text(listed)),
            (Step::Settle, names.text(fetched)),
        ],
    })
}

/// A heartbeat with the epoch that Kafka gave; the error, if it is refused. One whose members are
/// away for a while has nobody to go on.
fn go_on(
    connection: &mut Connection,
    group: &str,
    member: &DescribedConsumerGroupMember,
) -> Result<Option<ErrorCode>, Failure> {
    if member.member_epoch < 0 {
        return Ok(None);
    }
    let owned = member.assignment.topic_partitions.iter();
    let request = ConsumerGroupHeartbeatRequest {
        group_id: group.into(),
        member_id: member.member_id.clone(),
        member_epoch: member.member_epoch,
        instance_id: member.instance_id.clone(),
        topic_partitions: Some(
            owned
                .map(|topic| TopicIdPartitions {
                    topic_id: topic.topic_id,
                    partitions: topic.partitions.clone(),
                })
                .collect(),
        ),
        ..Default::default()
    };
    let answer = connection.ask(&request, 1)?;
    Ok(match answer {
        Some(answer) if answer.error_code.is_error() => Some(answer.error_code),
        Some(_) => None,
        None => Some(ErrorCode::NETWORK_EXCEPTION),
    })
}

/// All topics with their ids, as kohort keeps them.
pub(super) fn topics(connection: &mut Connection) -> Result<serde_json::Value, Failure> {
    let request = MetadataRequest {
        topics: None,
        ..Default::default()
    };
    let answer = connection.ask(&request, 12)?.unwrap_or_default();
    let topics = answer.topics.iter().map(|topic| {
        let name = topic.name.clone().unwrap_or_default().to_string();
        let entry = json!({
            "id": topic.topic_id.to_string(),
            "partitions": topic.partitions.len(),
        });
        (name, entry)
    });
    Ok(json!({
        "format": 1,
        "cluster_id": answer.cluster_id.clone().unwrap_or_default().to_string(),
        "node_id": 1,
        "next_producer_id": 0,
        "topics": topics.collect::<serde_json::Map<_, _>>(),
    }))
}

/// Copies the partitions of `__consumer_offsets`; how many segments they have.
fn take_over(from: &Path, to: &Path, topics: &serde_json::Value) -> Result<usize, Failure> {
    fs::create_dir_all(to)?;
    fs::write(to.join("kohort.json"), topics.to_string())?;
    let mut segments = 0;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let name = entry.file_name();
        if !name.to_string_lossy().starts_with(OFFSETS_TOPIC) {
            continue;
        }
        let folder = to.join(&name);
        fs::create_dir_all(&folder)?;
        for file in fs::read_dir(entry.path())? {
            let file = file?;
            segments += usize::from(file.path().extension().is_some_and(|it| it == "log"));
            fs::copy(file.path(), folder.join(file.file_name()))?;
        }
    }
    Ok(segments)
}

/// Offsets in a transaction that is committed, and others in one that is not.
fn commit_in_transactions(address: &str) -> Result<(), Failure> {
    let mut connection = Connection::open(address)?;
    let request = CreateTopicsRequest {
        topics: vec![CreatableTopic {
            name: "transactions".into(),
            num_partitions: 2,
            replication_factor: 1,
            ..Default::default()
        }],
        ..Default::default()
    };
    connection.ask(&request, 7)?;
    for (partition, committed) in [(0, true), (1, false)] {
        let id: ByteString = format!("transaction-{partition}").into();
        // Until the coordinators are there.
        retried(&mut connection, |connection| {
            let request = FindCoordinatorRequest {
                key_type: 1,
                coordinator_keys: vec![id.clone()],
                ..Default::default()
            };
            let answer = connection.ask(&request, 4)?.unwrap_or_default();
            Ok((answer.coordinators.iter())
                .map(|one| one.error_code)
                .next()
                .unwrap_or(ErrorCode::COORDINATOR_NOT_AVAILABLE))
        })?;
        let (mut producer_id, mut producer_epoch) = (0, 0);
        retried(&mut connection, |connection| {
            let request = InitProducerIdRequest {
                transactional_id: Some(id.clone()),
                transaction_timeout_ms: 60_000,
                ..Default::default()
            };
            let answer = connection.ask(&request, 4)?.unwrap_or_default();
            (producer_id, producer_epoch) = (answer.producer_id, answer.producer_epoch);
            Ok(answer.error_code)
        })?;
        retried(&mut connection, |connection| {
            let request = AddOffsetsToTxnRequest {
                transactional_id: id.clone(),
                producer_id,
                producer_epoch,
                group_id: TRANSACTION_GROUP.into(),
            };
            Ok(connection.ask(&request, 3)?.unwrap_or_default().error_code)
        })?;
        retried(&mut connection, |connection| {
            let request = TxnOffsetCommitRequest {
                transactional_id: id.clone(),
                group_id: TRANSACTION_GROUP.into(),
                producer_id,
                producer_epoch,
                topics: vec![TxnOffsetCommitRequestTopic {
                    name: "transactions".into(),
                    partitions: vec![TxnOffsetCommitRequestPartition {
                        partition_index: partition,
                        committed_offset: 42,
                        ..Default::default()
                    }],
                    ..Default::default()
                }],
                ..Default::default()
            };
            let answer = connection.ask(&request, 3)?.unwrap_or_default();
            let partitions = answer.topics.iter().flat_map(|topic| &topic.partitions);
            Ok(partitions
                .map(|one| one.error_code)
                .next()
                .unwrap_or_default())
        })?;
        retried(&mut connection, |connection| {
            let request = EndTxnRequest {
                transactional_id: id.clone(),
                producer_id,
                producer_epoch,
                committed,
            };
            Ok(connection.ask(&request, 3)?.unwrap_or_default().error_code)
        })?;
    }
    // The marker in the log of the group is written after the answer.
    let deadline = Instant::now() + LOAD_LIMIT;
    while describe(&mut connection, TRANSACTION_GROUP)?.offsets == 0 {
        if Instant::now() > deadline {
            return Err(Failure::new("the transaction's offsets do not appear"));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

pub(super) fn retried(
    connection: &mut Connection,
    mut ask: impl FnMut(&mut Connection) -> Result<ErrorCode, Failure>,
) -> Result<(), Failure> {
    let deadline = Instant::now() + LOAD_LIMIT;
    loop {
        let code = ask(connection)?;
        if !code.is_error() {
            return Ok(());
        }
        if !code.is_retriable() || Instant::now() > deadline {
            return Err(Failure::new(format!("asking again and again: {code}")));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}
