//! Rewinding groups: where to, and asking for it.
//!
//! `kohort serve` rewinds a group while its members run; it is asked by a commit whose metadata
//! begins with a mark. Other brokers would take the mark for metadata, so that it is sent only to
//! one that knows it: they are asked first what they remember of the last rewind, which no other
//! broker answers as kohort does.

use std::{collections::BTreeMap, time::Duration};

use bytestring::ByteString;
use kohort_group::rewind::{BEFORE_MEMBER, MARK, PENDING_MEMBER};
use kohort_wire::{ApiKey, ErrorCode, codec::Versions, messages::*};

use crate::{
    CommittedOffset, Each, Error, IsolationLevel, OffsetSpec, Result, Subject, TopicPartition,
    by_leader::by_topic,
    committed::{TopicIds, commit_request, commit_response, committed_offsets},
    list_offsets::list_offsets,
    rpc::{Cluster, Destination, Lane},
};

/// Where a group is to go on in a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RewindTo {
    /// At the first record.
    Earliest,
    /// After the last record.
    Latest,
    /// At this offset.
    Offset(i64),
    /// At the first record at or after this time in milliseconds since 1970; after the last one if
    /// there is none.
    Timestamp(i64),
    /// At the first record of so long ago.
    Ago(Duration),
    /// So many records after what is committed; negative: before it.
    ShiftBy(i64),
}

impl From<i64> for RewindTo {
    fn from(offset: i64) -> RewindTo {
        RewindTo::Offset(offset)
    }
}

/// A partition of a rewind: from where to where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RewindStep {
    /// The partition.
    pub partition: TopicPartition,
    /// What is committed, or was before the rewind.
    pub before: Option<CommittedOffset>,
    /// What is to be committed. None: nothing, as before anybody committed.
    pub to: Option<CommittedOffset>,
}

/// The last rewind of a group, or the one that is under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastRewind {
    /// When it happened, or was asked for; in milliseconds since 1970.
    pub at: i64,
    /// What was committed before, or is now, and where it went, or goes.
    pub steps: Vec<RewindStep>,
}

/// How long a rewind may take unless it is said otherwise: longer than members may take to give up
/// partitions, which by default is five minutes.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(10 * 60);

/// Finds out where to: all of it, or an error that names the partition that cannot go there.
pub(crate) async fn plan(
    cluster: &Cluster,
    group_id: &str,
    partitions: &[(TopicPartition, RewindTo)],
    clamp: bool,
) -> Result<Vec<RewindStep>> {
    let names: Vec<TopicPartition> = partitions.iter().map(|(name, _)| name.clone()).collect();
    let committed = committed(cluster, group_id, &names).await?;
    let bounds = Bounds::of(cluster, &names).await?;
    let times = times(cluster, partitions).await?;
    let mut steps = Vec::with_capacity(partitions.len());
    for (partition, to) in partitions {
        let before = committed.get(partition).cloned().flatten();
        let (start, end) = bounds.of_partition(partition)?;
        let offset = match to {
            RewindTo::Earliest => start,
            RewindTo::Latest => end,
            RewindTo::Offset(offset) => *offset,
            RewindTo::Timestamp(_) | RewindTo::Ago(_) => {
                times.get(partition).copied().flatten().unwrap_or(end)
            }
            RewindTo::ShiftBy(count) => match &before {
                Some(before) => before.offset.saturating_add(*count),
                None => {
                    return Err(Error::State(format!(
                        "partition {partition}: group {group_id} has committed nothing there that \
                         could be shifted"
                    )));
                }
            },
        };
        let to = within(partition, offset, (start, end), clamp)?;
        steps.push(RewindStep {
            partition: partition.clone(),
            before,
            to: Some(CommittedOffset::new(to)),
        });
    }
    Ok(steps)
}

/// Finds out what an undo of the last rewind goes back to.
pub(crate) async fn plan_undo(
    cluster: &Cluster,
    group_id: &str,
    clamp: bool,
) -> Result<Vec<RewindStep>> {
    let Some(last) = last_rewind(cluster, group_id).await? else {
        return Err(Error::State(format!(
            "the coordinator of group {group_id} remembers no rewind that could be undone"
        )));
    };
    let names: Vec<TopicPartition> = last.steps.iter().map(|s| s.partition.clone()).collect();
    let committed = committed(cluster, group_id, &names).await?;
    let bounds = Bounds::of(cluster, &names).await?;
    let mut steps = Vec::with_capacity(last.steps.len());
    for step in last.steps {
        let to = match step.before {
            Some(before) => {
                let bounds = bounds.of_partition(&step.partition)?;
                let offset = within(&step.partition, before.offset, bounds, clamp)?;
                Some(if offset == before.offset {
                    before
                } else {
                    CommittedOffset {
                        offset,
                        leader_epoch: None,
                        ..before
                    }
                })
            }
            None => None,
        };
        steps.push(RewindStep {
            before: committed.get(&step.partition).cloned().flatten(),
            partition: step.partition,
            to,
        });
    }
    Ok(steps)
}

fn within(
    partition: &TopicPartition,
    offset: i64,
    (start, end): (i64, i64),
    clamp: bool,
) -> Result<i64> {
    if clamp || (start..=end).contains(&offset) {
        Ok(offset.clamp(start, end.max(start)))
    } else {
        Err(Error::State(format!(
            "partition {partition}: offset {offset} is outside of the log, which goes from {start} \
             to {end}; clamp takes the nearest one inside"
        )))
    }
}

async fn committed(
    cluster: &Cluster,
    group_id: &str,
    partitions: &[TopicPartition],
) -> Result<BTreeMap<TopicPartition, Option<CommittedOffset>>> {
    let timeout = cluster.config().api_timeout;
    let by_name = TopicIds::default();
    let asked = committed_offsets(
        cluster,
        group_id,
        None,
        Some(partitions),
        &by_name,
        true,
        timeout,
    );
    all(asked.await?)
}

/// Where logs start and end.
struct Bounds {
    starts: BTreeMap<TopicPartition, Option<i64>>,
    ends: BTreeMap<TopicPartition, Option<i64>>,
}

impl Bounds {
    async fn of(cluster: &Cluster, partitions: &[TopicPartition]) -> Result<Bounds> {
        Ok(Bounds {
            starts: offsets(cluster, partitions, OffsetSpec::Earliest).await?,
            ends: offsets(cluster, partitions, OffsetSpec::Latest).await?,
        })
    }

    fn of_partition(&self, partition: &TopicPartition) -> Result<(i64, i64)> {
        let known = |offsets: &BTreeMap<_, Option<i64>>| offsets.get(partition).copied().flatten();
        match (known(&self.starts), known(&self.ends)) {
            (Some(start), Some(end)) => Ok((start, end)),
            _ => Err(Error::State(format!(
                "partition {partition}: its leader does not say where its log starts and ends"
            ))),
        }
    }
}

async fn offsets(
    cluster: &Cluster,
    partitions: &[TopicPartition],
    spec: OffsetSpec,
) -> Result<BTreeMap<TopicPartition, Option<i64>>> {
    let asked = partitions.iter().map(|name| (name.clone(), spec));
    listed(cluster, asked.collect()).await
}

async fn times(
    cluster: &Cluster,
    partitions: &[(TopicPartition, RewindTo)],
) -> Result<BTreeMap<TopicPartition, Option<i64>>> {
    let now = crate::time::now_ms();
    let asked = partitions.iter().filter_map(|(name, to)| {
        let time = match to {
            RewindTo::Timestamp(time) => *time,
            RewindTo::Ago(ago) => {
                let ago = i64::try_from(ago.as_millis()).unwrap_or(i64::MAX);
                now.saturating_sub(ago)
            }
            _ => return None,
        };
        // Negative times stand for other things.
        Some((name.clone(), OffsetSpec::Timestamp(time.max(0))))
    });
    listed(cluster, asked.collect()).await
}

async fn listed(
    cluster: &Cluster,
    asked: Vec<(TopicPartition, OffsetSpec)>,
) -> Result<BTreeMap<TopicPartition, Option<i64>>> {
    if asked.is_empty() {
        return Ok(BTreeMap::new());
    }
    let timeout = cluster.config().api_timeout;
    let answers = list_offsets(cluster, asked, IsolationLevel::ReadUncommitted, timeout).await;
    let answers = all(answers)?.into_iter();
    Ok(answers
        .map(|(name, listed)| (name, listed.offset))
        .collect())
}

fn all<V>(each: Each<TopicPartition, V>) -> Result<BTreeMap<TopicPartition, V>> {
    each.into_iter()
        .map(|(name, result)| Ok((name, result?)))
        .collect()
}

/// Rewinds, and waits until it has happened: at most for `timeout`, after which it may happen yet.
/// Gives what was committed just before, as far as the coordinator tells.
pub(crate) async fn execute(
    cluster: &Cluster,
    group_id: &str,
    steps: &[RewindStep],
    timeout: Duration,
) -> Result<Vec<RewindStep>> {
    let names: Vec<TopicPartition> = steps.iter().map(|step| step.partition.clone()).collect();
    if names.is_empty() {
        return Ok(Vec::new());
    }
    if !is_known(cluster, group_id, &names).await? {
        commit_elsewhere(cluster, group_id, steps).await?;
        return Ok(steps.to_vec());
    }
    let offsets: Vec<_> = steps
        .iter()
        .map(|step| (step.partition.clone(), marked(step.to.as_ref())))
        .collect();
    let request = commit_request(group_id, None, &offsets);
    let checked = |response: &OffsetCommitResponse| {
        let codes = response.topics.iter().flat_map(|topic| &topic.partitions);
        let again = |code: ErrorCode| {
            // Another rewind is under way: this one has its turn afterwards.
            code.is_retriable() || code == ErrorCode::REBALANCE_IN_PROGRESS
        };
        match codes
            .map(|partition| partition.error_code)
            .find(|&c| again(c))
        {
            Some(code) => Err(Error::kafka(
                ApiKey::OffsetCommit,
                Subject::Group(group_id.into()),
                match code {
                    ErrorCode::REBALANCE_IN_PROGRESS => ErrorCode::COORDINATOR_LOAD_IN_PROGRESS,
                    code => code,
                },
            )),
            None => Ok(()),
        }
    };
    let to = Destination::Group(group_id.into());
    let versions = Versions::new(2, 9);
    let request = |_| request.clone();
    let ask = cluster.ask_within(&to, Lane::Rewind, versions, timeout, request, checked);
    refused(group_id, commit_response(ask.await?))?;
    let last = last_rewind(cluster, group_id).await?;
    Ok(last.map_or_else(|| steps.to_vec(), |last| last.steps))
}

/// Whether the coordinator of the group knows rewinds: only kohort's answers this in its own form.
pub(crate) async fn is_known(
    cluster: &Cluster,
    group_id: &str,
    partitions: &[TopicPartition],
) -> Result<bool> {
    let asked = remembered(cluster, group_id, BEFORE_MEMBER, Some(partitions));
    Ok(asked.await?.is_some())
}

/// The offset with the mark that makes a commit a rewind.
fn marked(to: Option<&CommittedOffset>) -> CommittedOffset {
    let metadata = match to {
        Some(to) if !to.metadata.is_empty() => format!("{MARK} metadata={}", to.metadata),
        _ => MARK.to_owned(),
    };
    CommittedOffset {
        offset: to.map_or(-1, |to| to.offset),
        leader_epoch: to.and_then(|to| to.leader_epoch),
        metadata: metadata.into(),
        topic_id: None,
    }
}

/// The first refusal that says something; the others only follow from it.
fn refused(group_id: &str, results: Each<TopicPartition, ()>) -> Result<()> {
    let mut errors: Vec<Error> = results.into_iter().filter_map(|(_, r)| r.err()).collect();
    errors.sort_by_key(|error| error.code() == Some(ErrorCode::OPERATION_NOT_ATTEMPTED));
    match errors.into_iter().next() {
        None => Ok(()),
        Some(error) if error.code() == Some(ErrorCode::NON_EMPTY_GROUP) => Err(Error::State(
            format!("group {group_id} has members that are no consumers: stop them, and try again"),
        )),
        Some(error) if error.code() == Some(ErrorCode::OPERATION_NOT_ATTEMPTED) => {
            Err(Error::State(format!(
                "the rewind of group {group_id} was cancelled: nothing was changed"
            )))
        }
        Some(error) => Err(error),
    }
}

/// On a cluster that cannot rewind a live group: sets the offsets of one without members.
async fn commit_elsewhere(cluster: &Cluster, group_id: &str, steps: &[RewindStep]) -> Result<()> {
    let mut offsets = Vec::with_capacity(steps.len());
    for step in steps {
        match &step.to {
            Some(to) => offsets.push((step.partition.clone(), to.clone())),
            None => {
                return Err(Error::State(format!(
                    "partition {}: this cluster cannot go back to where nothing is committed; \
                     delete the offsets instead",
                    step.partition
                )));
            }
        }
    }
    let results = crate::Admin::new(cluster.clone())
        .alter_group_offsets(group_id, &offsets)
        .await?;
    let live = [
        ErrorCode::UNKNOWN_MEMBER_ID,
        ErrorCode::NON_EMPTY_GROUP,
        ErrorCode::GROUP_ID_NOT_FOUND,
    ];
    let is_live = |(_, result): &(_, Result<()>)| {
        let code = result.as_ref().err().and_then(Error::code);
        code.is_some_and(|code| live.contains(&code))
    };
    if results.iter().any(is_live) {
        return Err(Error::State(format!(
            "group {group_id} has members, and this cluster cannot rewind a group while they run: \
             stop them and try again once the group is empty (`kohort serve` can do it at any time)"
        )));
    }
    refused(group_id, results)
}

/// The last rewind of a group, if its coordinator remembers one; clusters other than `kohort serve`
/// never do.
pub(crate) async fn last_rewind(cluster: &Cluster, group_id: &str) -> Result<Option<LastRewind>> {
    let steps = remembered(cluster, group_id, BEFORE_MEMBER, None).await?;
    Ok(steps.filter(|last| !last.steps.is_empty()))
}

/// The rewind of a group that waits for its members, if there is one.
pub(crate) async fn pending(cluster: &Cluster, group_id: &str) -> Result<Option<LastRewind>> {
    let steps = remembered(cluster, group_id, PENDING_MEMBER, None).await?;
    Ok(steps.filter(|pending| !pending.steps.is_empty()))
}

/// Gives up the rewind of a group that waits for its members: nothing that is committed changes, and
/// the partitions are handed out again. Gives what it would have done.
pub(crate) async fn cancel(cluster: &Cluster, group_id: &str) -> Result<Vec<RewindStep>> {
    let over = || {
        Error::State(format!(
            "no rewind of group {group_id} is under way that could be cancelled"
        ))
    };
    let pending = pending(cluster, group_id).await?.ok_or_else(over)?;
    let mark = CommittedOffset {
        offset: -1,
        leader_epoch: None,
        metadata: format!("{MARK} cancel").into(),
        topic_id: None,
    };
    let steps = pending.steps.iter();
    let offsets: Vec<_> = steps
        .map(|step| (step.partition.clone(), mark.clone()))
        .collect();
    let results = crate::Admin::new(cluster.clone())
        .alter_group_offsets(group_id, &offsets)
        .await?;
    // It has happened in the meantime, or another client was faster.
    let is_over = |(_, result): &(_, Result<()>)| {
        let code = result.as_ref().err().and_then(Error::code);
        code == Some(ErrorCode::INVALID_REQUEST)
    };
    if results.iter().any(is_over) {
        return Err(over());
    }
    refused(group_id, results)?;
    Ok(pending.steps)
}

/// What the coordinator tells a member of this name of the last rewind, or of the one under way;
/// `None`: it is not one of kohort's. With `partitions` every other broker answers for each of them.
async fn remembered(
    cluster: &Cluster,
    group_id: &str,
    member_id: &'static str,
    partitions: Option<&[TopicPartition]>,
) -> Result<Option<LastRewind>> {
    let topics = partitions.map(|partitions| {
        by_topic(partitions.iter().map(|name| (name.clone(), ())))
            .into_iter()
            .map(|(name, partitions)| OffsetFetchRequestTopics {
                name,
                partition_indexes: partitions.into_iter().map(|(index, ())| index).collect(),
                ..OffsetFetchRequestTopics::default()
            })
            .collect()
    });
    let request = OffsetFetchRequest {
        groups: vec![OffsetFetchRequestGroup {
            group_id: group_id.into(),
            member_id: Some(member_id.into()),
            member_epoch: -1,
            topics,
        }],
        ..OffsetFetchRequest::default()
    };
    let to = Destination::Group(group_id.into());
    let timeout = cluster.config().api_timeout;
    let checked = |response: &OffsetFetchResponse| {
        let codes = response.groups.iter().map(|group| group.error_code);
        match codes.into_iter().find(|code| code.is_retriable()) {
            Some(code) => Err(Error::kafka(
                ApiKey::OffsetFetch,
                Subject::Group(group_id.into()),
                code,
            )),
            None => Ok(()),
        }
    };
    // Since version 9 a member can ask.
    let versions = Versions::new(9, 9);
    let lane = Lane::Group;
    let ask = cluster.ask_within(&to, lane, versions, timeout, |_| request.clone(), checked);
    let response = match ask.await {
        Ok(response) => response,
        Err(Error::UnsupportedVersion { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut last = LastRewind {
        at: 0,
        steps: Vec::new(),
    };
    for group in response.groups {
        if group.error_code.is_error() {
            return Ok(None);
        }
        for topic in group.topics {
            for partition in topic.partitions {
                let metadata = partition.metadata.as_deref().unwrap_or_default();
                let Some(told) = Told::read(metadata) else {
                    return Ok(None);
                };
                last.at = told.at;
                let offset = partition.committed_offset;
                let epoch = partition.committed_leader_epoch;
                last.steps.push(RewindStep {
                    partition: TopicPartition::new(&*topic.name, partition.partition_index),
                    before: (offset >= 0).then(|| CommittedOffset {
                        offset,
                        leader_epoch: (epoch >= 0).then_some(epoch),
                        metadata: told.metadata.into(),
                        topic_id: None,
                    }),
                    to: (told.to >= 0).then(|| CommittedOffset::new(told.to)),
                });
            }
        }
    }
    Ok(Some(last))
}

/// What the metadata says with which kohort answers.
struct Told<'a> {
    at: i64,
    to: i64,
    metadata: &'a str,
}

impl<'a> Told<'a> {
    /// Reads `kohort:rewind at=… to=… metadata=…`.
    fn read(metadata: &'a str) -> Option<Told<'a>> {
        let rest = metadata.strip_prefix(MARK)?.strip_prefix(" at=")?;
        let (at, rest) = rest.split_once(" to=")?;
        let (to, metadata) = rest.split_once(" metadata=")?;
        Some(Told {
            at: at.parse().ok()?,
            to: to.parse().ok()?,
            metadata,
        })
    }
}

/// What was said, and a name for it.
pub(crate) fn group_of(group_id: Option<&ByteString>) -> Result<&ByteString> {
    group_id.ok_or_else(|| Error::config("group.id", "is needed to rewind a group"))
}
