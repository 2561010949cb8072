//! The positions of groups in their partitions, and how many records they have yet to read.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use kohort::{
    Admin, ByteString, Error, ErrorCode, IsolationLevel, OffsetSpec, TopicPartition,
    history::PartitionLag,
};
use tokio::task::JoinSet;

/// How many groups are asked about at a time.
const GROUPS_AT_A_TIME: usize = 50;

/// A group's position in a partition, and what is wrong with it.
#[derive(Debug)]
pub(crate) struct Position {
    pub(crate) lag: PartitionLag,
    /// The topic does not exist any more.
    pub(crate) is_deleted: bool,
    /// Why the bounds of the log are unknown.
    pub(crate) problem: Option<Error>,
}

impl Position {
    /// What the numbers do not say.
    pub(crate) fn remark(&self, group: &str) -> Option<String> {
        let PartitionLag {
            topic, partition, ..
        } = &self.lag;
        let name = format!("{topic}-{partition}");
        if self.is_deleted {
            return Some(format!(
                "group {group}: {name} does not exist any more; its committed offset remains"
            ));
        }
        if self.lag.gone() > 0 {
            return Some(format!(
                "group {group}: {} records of {name} were deleted before the group read them; they \
                 do not count as lag",
                self.lag.gone()
            ));
        }
        (self.lag.ahead() > 0).then(|| {
            format!(
                "group {group}: the committed offset of {name} is {} beyond the end of its log",
                self.lag.ahead()
            )
        })
    }
}

/// What groups have committed.
pub(crate) type Committed = BTreeMap<TopicPartition, Option<i64>>;

/// What each group has committed.
pub(crate) async fn committed(
    admin: &Admin,
    groups: impl IntoIterator<Item = ByteString>,
) -> HashMap<ByteString, Result<Committed, Error>> {
    let mut groups = groups.into_iter();
    let mut asked = JoinSet::new();
    let mut committed = HashMap::new();
    loop {
        while asked.len() < GROUPS_AT_A_TIME
            && let Some(group) = groups.next()
        {
            let admin = admin.clone();
            asked.spawn(async move {
                let offsets = committed_of(&admin, &group).await;
                (group, offsets)
            });
        }
        match asked.join_next().await {
            Some(done) => committed.extend(done.ok()),
            None => return committed,
        }
    }
}

async fn committed_of(admin: &Admin, group: &str) -> Result<Committed, Error> {
    let offsets = admin.list_group_offsets(group, None).await?.into_iter();
    let offsets = offsets.map(|(partition, offset)| Ok((partition, offset?.map(|it| it.offset))));
    offsets.collect()
}

/// Where logs start and end.
pub(crate) struct Bounds {
    starts: HashMap<TopicPartition, Result<Option<i64>, Error>>,
    ends: HashMap<TopicPartition, Result<Option<i64>, Error>>,
}

impl Bounds {
    pub(crate) async fn of(admin: &Admin, partitions: BTreeSet<TopicPartition>) -> Bounds {
        let list = async |spec| {
            let wanted: Vec<_> = partitions.iter().map(|it| (it.clone(), spec)).collect();
            let level = IsolationLevel::ReadUncommitted;
            let listed = admin.list_offsets(&wanted, level).await.into_iter();
            listed
                .map(|(partition, listed)| (partition, listed.map(|it| it.offset)))
                .collect()
        };
        let (starts, ends) = tokio::join!(list(OffsetSpec::Earliest), list(OffsetSpec::Latest));
        Bounds { starts, ends }
    }

    /// The position of a group that has committed this offset.
    pub(crate) fn position(&self, name: &TopicPartition, committed: Option<i64>) -> Position {
        let (start, end) = (self.starts.get(name), self.ends.get(name));
        let known = |it: Option<&Result<Option<i64>, Error>>| it?.as_ref().ok().copied().flatten();
        let problem = [end, start]
            .into_iter()
            .find_map(|it| it?.as_ref().err().cloned());
        let code = problem.as_ref().and_then(Error::code);
        let is_deleted = code == Some(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
        Position {
            lag: PartitionLag {
                topic: (&*name.topic).into(),
                partition: name.partition,
                committed,
                start: known(start),
                end: known(end),
            },
            is_deleted,
            problem: problem.filter(|_| !is_deleted),
        }
    }
}
