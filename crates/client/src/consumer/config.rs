//! How a consumer works.

use std::time::Duration;

pub use kohort_member::reader::OffsetReset;

use crate::{ByteString, ClientConfig, Error, IsolationLevel, Result, rpc::check_time};

/// `group.protocol`: how the members of the group agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum GroupProtocol {
    /// The consumer protocol (KIP-848): the coordinator assigns.
    Consumer,
    /// The classic protocol: a member assigns.
    Classic,
    /// The consumer protocol, or the classic one if the cluster does not have it.
    #[default]
    Auto,
}

/// `partition.assignment.strategy`: how the leader of a classic group shares the partitions out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AssignmentStrategy {
    /// `range`: neighbouring partitions of each topic.
    Range,
    /// `roundrobin`: one partition after the other.
    RoundRobin,
    /// `sticky`: balanced, moving as little as possible.
    Sticky,
    /// `cooperative-sticky`: the same, and members keep what they have through a rebalance
    /// (KIP-429).
    CooperativeSticky,
}

/// How a consumer works. What the fields are called in Kafka's configuration is said with each.
#[derive(Debug, Clone)]
pub struct ConsumerConfig {
    /// How the cluster is reached.
    pub client: ClientConfig,
    /// `group.id`: the group to join, or to commit for. Default none.
    pub group_id: Option<ByteString>,
    /// `group.instance.id`: makes a static member, which keeps its partitions while it restarts.
    /// Default none.
    pub group_instance_id: Option<ByteString>,
    /// `group.protocol`. Default [`GroupProtocol::Auto`].
    pub group_protocol: GroupProtocol,
    /// `group.remote.assignor`: how the coordinator is to assign (consumer protocol), `uniform` or
    /// `range` with most brokers. Default: the coordinator's choice.
    pub group_remote_assignor: Option<ByteString>,
    /// `partition.assignment.strategy` (classic protocol), the one that is wanted most first.
    /// Default range and cooperative-sticky, as in Kafka's own client: to go from one to the other
    /// needs no stop of the whole group.
    pub assignment_strategies: Vec<AssignmentStrategy>,
    /// `session.timeout.ms`: how long the coordinator may be without a heartbeat before it takes
    /// the member for dead (classic protocol; in the consumer protocol the group's settings count).
    /// Default 45 s.
    pub session_timeout: Duration,
    /// `heartbeat.interval.ms` (classic protocol; in the consumer protocol the coordinator names
    /// it). Default 3 s.
    pub heartbeat_interval: Duration,
    /// `max.poll.interval.ms`: how long the application may take between two polls before its
    /// partitions are given to other members, and how long it may take to release revoked partitions.
    /// Default 5 min.
    pub poll_interval_max: Duration,
    /// `max.poll.records`: how many records one poll returns at most. Default 500.
    pub poll_records_max: usize,
    /// `enable.auto.commit`: what the application has finished with is committed now and then, and
    /// when partitions are taken away. Default on.
    pub auto_commit: bool,
    /// `auto.commit.interval.ms`. Default 5 s.
    pub auto_commit_interval: Duration,
    /// `auto.offset.reset`. Default [`OffsetReset::Latest`].
    pub offset_reset: OffsetReset,
    /// `isolation.level`. Default [`IsolationLevel::ReadUncommitted`].
    pub isolation_level: IsolationLevel,
    /// `client.rack`: the rack in which this is, so that records are fetched from a replica nearby.
    /// Default none.
    pub rack: Option<ByteString>,
    /// `fetch.min.bytes`: how much there has to be before a broker answers. Default 1.
    pub fetch_bytes_min: i32,
    /// `fetch.max.wait.ms`: how long a broker waits for that. Default 500 ms.
    pub fetch_wait_max: Duration,
    /// `fetch.max.bytes`: how much one answer may hold; a batch that is larger comes nevertheless.
    /// Default 50 MiB.
    pub fetch_bytes_max: usize,
    /// `max.partition.fetch.bytes`: how much of that for one partition. Default 1 MiB.
    pub partition_fetch_bytes_max: usize,
    /// How many bytes, as they come over the wire, are fetched before the application asks for
    /// them. Kafka has no such setting; here it is `prefetch.max.bytes`. Default 32 MiB.
    pub prefetch_bytes_max: usize,
    /// How large the records of one batch may be when they are decompressed, in bytes; here
    /// `decompressed.max.bytes`. Default 256 MiB.
    pub decompressed_bytes_max: usize,
    /// `check.crcs`: whether the checksums of batches are checked. Default on.
    pub check_crcs: bool,
}

impl Default for ConsumerConfig {
    fn default() -> ConsumerConfig {
        ConsumerConfig {
            client: ClientConfig::default(),
            group_id: None,
            group_instance_id: None,
            group_protocol: GroupProtocol::Auto,
            group_remote_assignor: None,
            assignment_strategies: vec![
                AssignmentStrategy::Range,
                AssignmentStrategy::CooperativeSticky,
            ],
            session_timeout: Duration::from_secs(45),
            heartbeat_interval: Duration::from_secs(3),
            poll_interval_max: Duration::from_secs(300),
            poll_records_max: 500,
            auto_commit: true,
            auto_commit_interval: Duration::from_secs(5),
            offset_reset: OffsetReset::Latest,
            isolation_level: IsolationLevel::ReadUncommitted,
            rack: None,
            fetch_bytes_min: 1,
            fetch_wait_max: Duration::from_millis(500),
            fetch_bytes_max: 50 << 20,
            partition_fetch_bytes_max: 1 << 20,
            prefetch_bytes_max: 32 << 20,
            decompressed_bytes_max: 256 << 20,
            check_crcs: true,
        }
    }
}

impl ConsumerConfig {
    /// The defaults, and these servers (`host:port`, several separated by commas).
    pub fn new(bootstrap_servers: &str) -> ConsumerConfig {
        ConsumerConfig {
            client: ClientConfig::new(bootstrap_servers),
            ..ConsumerConfig::default()
        }
    }

    /// Sets the group.
    pub fn group(mut self, group_id: impl Into<ByteString>) -> ConsumerConfig {
        self.group_id = Some(group_id.into());
        self
    }

    /// An error if settings contradict each other or cannot be meant.
    pub fn validate(&self) -> Result<()> {
        self.client.validate()?;
        let refuse = |setting: &str, problem: &str| Err(Error::config(setting, problem));
        for (setting, time) in [
            ("session.timeout.ms", self.session_timeout),
            ("max.poll.interval.ms", self.poll_interval_max),
            ("auto.commit.interval.ms", self.auto_commit_interval),
        ] {
            check_time(setting, time)?;
            if time.is_zero() {
                return refuse(setting, "must not be 0");
            }
        }
        if self.group_id.as_ref().is_some_and(|id| id.is_empty()) {
            return refuse("group.id", "must not be empty");
        }
        if self
            .group_instance_id
            .as_ref()
            .is_some_and(|id| id.is_empty())
        {
            return refuse("group.instance.id", "must not be empty");
        }
        if self.group_instance_id.is_some() && self.group_id.is_none() {
            return refuse("group.instance.id", "needs a group.id");
        }
        if self.group_protocol == GroupProtocol::Classic && self.group_remote_assignor.is_some() {
            let problem = "has no meaning with group.protocol=classic";
            return refuse("group.remote.assignor", problem);
        }
        if self.fetch_bytes_min < 0 {
            return refuse("fetch.min.bytes", "must not be negative");
        }
        if self.fetch_bytes_max == 0 {
            return refuse("fetch.max.bytes", "must not be 0");
        }
        if self.assignment_strategies.is_empty() {
            return refuse("partition.assignment.strategy", "must not be empty");
        }
        if self.poll_records_max == 0 {
            return refuse("max.poll.records", "must not be 0");
        }
        if self.heartbeat_interval >= self.session_timeout {
            return refuse(
                "heartbeat.interval.ms",
                "must be less than session.timeout.ms",
            );
        }
        if self.fetch_wait_max >= self.client.request_timeout {
            return refuse("fetch.max.wait.ms", "must be less than request.timeout.ms");
        }
        if self.prefetch_bytes_max == 0 || self.partition_fetch_bytes_max == 0 {
            return refuse("max.partition.fetch.bytes", "must not be 0");
        }
        Ok(())
    }
}
