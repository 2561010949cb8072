//! What the member needs to know of topics.

use kohort_group::assignor::classic::PartitionCounts;
use kohort_member::Member;
use kohort_wire::Uuid;
use regex::Regex;
use tokio::time::{Instant, sleep};

use super::{Event, GroupTask, MemberSubscription};
use crate::{ByteString, Error, Result, rpc::Topics};

/// The expression that matches what `regex` matches as a whole.
pub(super) fn whole(regex: &str) -> Result<Regex> {
    Regex::new(&format!("^(?:{regex})$"))
        .map_err(|error| Error::State(format!("{regex} is not a regular expression: {error}")))
}

/// The topics that a leader assigned, and how many partitions they had.
pub(super) struct Counted {
    topics: Vec<ByteString>,
    counts: PartitionCounts,
    /// When to look again.
    again: Instant,
    looking: bool,
}

impl Counted {
    /// When to look again, unless that is under way.
    pub(super) fn again(&self) -> Option<Instant> {
        (!self.looking).then_some(self.again)
    }
}

impl GroupTask {
    /// Finds the names of topics.
    pub(super) fn resolve(&mut self, ids: Vec<Uuid>) {
        let cluster = self.shared.cluster.clone();
        let failures = self.resolve_failures + 1;
        self.events.push(Box::pin(async move {
            let names = |ids: &[Uuid]| {
                let metadata = cluster.metadata();
                let names = ids.iter().filter_map(|id| {
                    let topic = metadata.topic_by_id(*id)?;
                    Some((*id, topic.name.clone()))
                });
                names.collect::<std::collections::BTreeMap<_, _>>()
            };
            let mut found = names(&ids);
            if found.len() < ids.len() {
                let unknown = ids.iter().filter(|id| !found.contains_key(*id));
                let asked = cluster
                    .refresh(&Topics::Ids(unknown.copied().collect()))
                    .await;
                if let Err(error) = asked {
                    tracing::debug!(%error, "assigned topics cannot be found yet");
                }
                found = names(&ids);
            }
            let missing: Vec<_> = ids
                .into_iter()
                .filter(|id| !found.contains_key(id))
                .collect();
            if found.is_empty() {
                sleep(cluster.config().retry_backoff.after(failures)).await;
            }
            Event::Resolved(found, missing)
        }));
    }

    /// Finds how many partitions topics have.
    pub(super) fn count(&mut self, topics: Vec<ByteString>) {
        let cluster = self.shared.cluster.clone();
        self.events.push(Box::pin(async move {
            let wanted = Topics::Named(topics.clone());
            let mut failures = 0;
            while let Err(error) = cluster.refresh(&wanted).await {
                if matches!(error, Error::Closed) {
                    break;
                }
                failures += 1;
                tracing::debug!(%error, "the partitions cannot be counted yet");
                sleep(cluster.config().retry_backoff.after(failures)).await;
            }
            let counts = counts(&cluster.metadata(), &topics);
            Event::Counted(topics, counts)
        }));
    }

    pub(super) fn counted(&self, topics: Vec<ByteString>, counts: PartitionCounts) -> Counted {
        Counted {
            topics,
            counts,
            again: Instant::now() + self.shared.cluster.config().metadata_max_age,
            looking: false,
        }
    }

    /// Looks for topics and partitions that are new since the last assignment. No other member asks
    /// for those.
    pub(super) fn count_again(&mut self) {
        let Some(counted) = &mut self.counted else {
            return;
        };
        counted.looking = true;
        let wanted = Topics::Named(counted.topics.clone());
        let cluster = self.shared.cluster.clone();
        self.events.push(Box::pin(async move {
            if let Err(error) = cluster.refresh(&wanted).await {
                tracing::debug!(%error, "the partitions cannot be counted again yet");
            }
            Event::CountedAgain
        }));
    }

    pub(super) fn counted_again(&mut self) {
        let again = Instant::now() + self.shared.cluster.config().metadata_max_age;
        if let Some(counted) = &mut self.counted {
            counted.looking = false;
            counted.again = again;
        }
    }

    /// As the leader of a classic group: partitions have come or gone. A topic that was asked for
    /// and did not exist yet has none.
    pub(super) fn metadata_changed(&mut self) {
        let Some(counted) = &self.counted else { return };
        if counts(&self.shared.cluster.metadata(), &counted.topics) != counted.counts {
            self.counted = None;
            let now = self.now();
            if let Member::Classic(member) = &mut self.member {
                member.metadata_changed(now);
            }
        }
    }

    /// Finds the topics that match the regular expression.
    pub(super) fn match_topics(&mut self) {
        let Some((regex, _)) = &self.regex else {
            return;
        };
        self.matching = true;
        let regex = regex.clone();
        let cluster = self.shared.cluster.clone();
        self.events.push(Box::pin(async move {
            let metadata = match cluster.refresh(&Topics::All).await {
                Ok(metadata) => metadata,
                Err(error) => {
                    tracing::debug!(%error, "the topics cannot be listed yet");
                    return Event::Matched(None);
                }
            };
            let topics = metadata.topics().filter(|topic| !topic.internal);
            let matching = topics.filter(|topic| regex.is_match(&topic.name));
            Event::Matched(Some(matching.map(|topic| topic.name.clone()).collect()))
        }));
    }

    pub(super) fn matched(&mut self, topics: Option<Vec<ByteString>>) {
        let Some((_, again)) = &mut self.regex else {
            return;
        };
        let config = self.shared.cluster.config();
        let wait = match topics {
            Some(_) => config.metadata_max_age,
            None => config.retry_backoff.most,
        };
        *again = Instant::now() + wait;
        if let Some(topics) = topics {
            let now = self.now();
            self.member
                .subscribe(MemberSubscription::topics(topics), now);
        }
    }
}

fn counts(metadata: &crate::rpc::Metadata, topics: &[ByteString]) -> PartitionCounts {
    let counts = topics.iter().filter_map(|topic| {
        let known = metadata.topic(topic)?;
        Some((topic.clone(), known.partitions.len() as i32))
    });
    counts.collect()
}
