//! The settings of the broker. Where Kafka has the setting, name, type, default and bounds are
//! Kafka's; kohort's own begin with `kohort.`.

use super::definition::{Definition, Kind::*, Rule::*, Table};
use super::{without_effect, words::*};

const MIB: &str = "1048576";

/// All settings of the broker.
pub(crate) const BROKER: Table = Table {
    without_effect: without_effect::BROKER,
    with_effect: &[
    // The broker's id and addresses.
    Definition::new("node.id", Int, "1", "The id of this broker.").rule(AtLeast(0)).at_start(),
    Definition::new("listeners", List, "PLAINTEXT://127.0.0.1:9092", "Where the broker listens: host:port or NAME://host:port, one or several; port 0 takes a free one.").at_start(),
    Definition::new("advertised.listeners", List, "", "Where clients are told to find the broker, when it is not where it listens: for each listener one address, by name or in the same order. A client is told the one of the listener through which it has come.").unset().at_start(),
    Definition::new("listener.security.protocol.map", List, "", "The protocol of each listener, as NAME:PROTOCOL. Only PLAINTEXT is supported.").unset().at_start(),
    Definition::new("log.dirs", List, "", "The folder of the data. Exactly one.").unset().at_start(),
    Definition::new("broker.rack", Text, "", "The rack of this broker.").unset().at_start(),

    // Connections and memory.
    Definition::new("connections.max.idle.ms", Long, "600000", "A connection on which nothing happens for so long is closed.").rule(AtLeast(1)).at_start(),
    Definition::new("max.connections", Int, "50000", "How many connections there may be. Beyond it, the oldest that has never sent a request makes room, or the new one is closed. (Kafka: no limit.)").rule(AtLeast(0)),
    Definition::new("max.connections.per.ip", Int, "2147483647", "How many connections one address may have.").rule(AtLeast(0)),
    Definition::new("socket.request.max.bytes", Int, "104857600", "The largest request; a connection that announces a larger one is closed.").rule(AtLeast(1)).at_start(),
    // What is read into lists takes many times the memory of its frame; records do not.
    Definition::new("kohort.control.request.max.bytes", Int, "8388608", "The largest request of any API but Produce; a connection that sends a larger one is closed.").rule(AtLeast(1 << 16)).at_start(),
    Definition::new("socket.listen.backlog.size", Int, "1024", "How many connections may wait to be accepted.").rule(AtLeast(1)).at_start(),
    Definition::new("queued.max.request.bytes", Long, "268435456", "How many bytes of requests are held in memory at a time; beyond it connections are read no further. (Kafka: no limit.)").rule(AtLeast(1 << 20)).at_start(),
    Definition::new("kohort.queued.max.response.bytes", Long, "268435456", "How many bytes of fetched records wait to be sent at a time; beyond it fetches wait or carry less.").rule(AtLeast(1 << 20)).at_start(),
    Definition::new("kohort.connection.max.requests", Int, "32", "How many requests of one connection are worked on at a time; beyond it the connection is read no further.").rule(Between(1, 10_000)).at_start(),
    Definition::new("kohort.connection.stall.timeout.ms", Long, "30000", "A connection that has begun a request and sends no more of it, or does not read its responses, is closed after so long.").rule(AtLeast(100)).at_start(),
    Definition::new("kohort.connection.min.bytes.per.second", Int, "4096", "How fast a connection has to send a request that it has begun, and to read its responses, on average over kohort.connection.stall.timeout.ms. A slower one is closed.").rule(AtLeast(1)).at_start(),

    // Topics.
    Definition::new("auto.create.topics.enable", Bool, "true", "Whether a topic that a client asks for and that does not exist is created.").at_start(),
    Definition::new("num.partitions", Int, "1", "How many partitions a topic gets when nobody says.").rule(AtLeast(1)).at_start(),
    Definition::new("default.replication.factor", Int, "1", "The number of replicas; a kohort broker is alone.").rule(Between(1, 1)).at_start(),
    Definition::new("delete.topic.enable", Bool, "true", "Whether topics may be deleted.").at_start(),
    Definition::new("kohort.max.partitions", Int, "200000", "How many partitions there may be in all.").rule(AtLeast(1)).at_start(),
    Definition::new("message.max.bytes", Int, "1048588", "The largest batch that may be appended, as it is stored.").rule(AtLeast(0)),
    Definition::new("min.insync.replicas", Int, "1", "The default of the topics' min.insync.replicas.").rule(AtLeast(1)),
    Definition::new("unclean.leader.election.enable", Bool, "false", "The default of the topics' unclean.leader.election.enable."),
    Definition::new("compression.type", Text, "producer", "The default of the topics' compression.type.").rule(OneOf(StoredCompression::WORDS)),
    Definition::new("compression.gzip.level", Int, "-1", "The default of the topics' compression.gzip.level.").rule(Between(-1, 9)),
    Definition::new("compression.lz4.level", Int, "9", "The default of the topics' compression.lz4.level.").rule(Between(1, 17)),
    Definition::new("compression.zstd.level", Int, "3", "The default of the topics' compression.zstd.level.").rule(Between(-131_072, 22)),

    // Logs.
    Definition::new("log.cleanup.policy", List, "delete", "The default of the topics' cleanup.policy.").rule(SomeOf(Cleanup::WORDS)),
    Definition::new("log.retention.ms", Long, "", "The default of the topics' retention.ms, before log.retention.minutes and log.retention.hours; -1: no limit.").unset().rule(AboveZeroOrUnlimited),
    Definition::new("log.retention.minutes", Int, "", "log.retention.ms in minutes.").unset().rule(AboveZeroOrUnlimited),
    Definition::new("log.retention.hours", Int, "168", "log.retention.ms in hours.").rule(AboveZeroOrUnlimited),
    Definition::new("log.retention.bytes", Long, "-1", "The default of the topics' retention.bytes."),
    Definition::new("log.retention.check.interval.ms", Long, "300000", "How often logs are looked through for segments to be deleted.").rule(AtLeast(1)).at_start(),
    Definition::new("log.segment.bytes", Int, "1073741824", "The default of the topics' segment.bytes.").rule(AtLeast(1 << 20)),
    Definition::new("log.segment.delete.delay.ms", Long, "60000", "The default of the topics' file.delete.delay.ms.").rule(AtLeast(0)),
    Definition::new("log.roll.ms", Long, "", "The default of the topics' segment.ms, before log.roll.hours.").unset().rule(AtLeast(1)),
    Definition::new("log.roll.hours", Int, "168", "log.roll.ms in hours.").rule(AtLeast(1)),
    Definition::new("log.roll.jitter.ms", Long, "", "The default of the topics' segment.jitter.ms.").unset().rule(AtLeast(0)),
    Definition::new("log.roll.jitter.hours", Int, "0", "log.roll.jitter.ms in hours.").rule(AtLeast(0)),
    Definition::new("log.index.size.max.bytes", Int, "10485760", "The default of the topics' segment.index.bytes.").rule(AtLeast(4)),
    Definition::new("log.index.interval.bytes", Int, "4096", "The default of the topics' index.interval.bytes.").rule(AtLeast(0)),
    Definition::new("log.flush.interval.messages", Long, "9223372036854775807", "The default of the topics' flush.messages.").rule(AtLeast(1)),
    Definition::new("log.flush.interval.ms", Long, "", "The default of the topics' flush.ms.").unset(),
    Definition::new("log.flush.scheduler.interval.ms", Long, "9223372036854775807", "log.flush.interval.ms, when that is not set.").at_start(),
    Definition::new("log.message.timestamp.type", Text, "CreateTime", "The default of the topics' message.timestamp.type.").rule(OneOf(Timestamps::WORDS)),
    Definition::new("log.message.timestamp.before.max.ms", Long, "9223372036854775807", "The default of the topics' message.timestamp.before.max.ms.").rule(AtLeast(0)),
    Definition::new("log.message.timestamp.after.max.ms", Long, "3600000", "The default of the topics' message.timestamp.after.max.ms.").rule(AtLeast(0)),
    Definition::new("log.preallocate", Bool, "false", "The default of the topics' preallocate."),
    Definition::new("log.cleaner.backoff.ms", Long, "15000", "How often compacted logs are looked through for work.").rule(AtLeast(0)).at_start(),
    Definition::new("log.cleaner.delete.retention.ms", Long, "86400000", "The default of the topics' delete.retention.ms.").rule(AtLeast(0)),
    Definition::new("log.cleaner.min.compaction.lag.ms", Long, "0", "The default of the topics' min.compaction.lag.ms.").rule(AtLeast(0)),
    Definition::new("log.cleaner.max.compaction.lag.ms", Long, "9223372036854775807", "The default of the topics' max.compaction.lag.ms.").rule(AtLeast(1)),
    Definition::new("log.cleaner.min.cleanable.ratio", Double, "0.5", "The default of the topics' min.cleanable.dirty.ratio.").rule(Ratio),

    // Fetching and producing.
    Definition::new("fetch.max.bytes", Int, "57671680", "The most bytes of records in one response to a fetch.").rule(AtLeast(1024)).at_start(),
    Definition::new("max.incremental.fetch.session.cache.slots", Int, "1000", "How many fetch sessions are kept (KIP-227).").rule(AtLeast(0)).at_start(),
    Definition::new("producer.id.expiration.ms", Int, "86400000", "How long an idempotent producer that is silent is remembered.").rule(AtLeast(1)),

    // Groups.
    Definition::new("group.coordinator.rebalance.protocols", List, "classic,consumer", "The protocols in which groups may be formed.").rule(OneOrMoreOf(Protocol::WORDS)).at_start(),
    Definition::new("group.min.session.timeout.ms", Int, "6000", "The shortest session of a member of a classic group.").rule(AtLeast(1)).at_start(),
    Definition::new("group.max.session.timeout.ms", Int, "1800000", "The longest session of a member of a classic group.").rule(AtLeast(1)).at_start(),
    Definition::new("group.initial.rebalance.delay.ms", Int, "3000", "How long an empty classic group waits for more members. The wait ends once no new member has arrived for a tenth of it.").rule(AtLeast(0)).at_start(),
    Definition::new("group.max.size", Int, "2147483647", "The most members of a classic group.").rule(AtLeast(1)).at_start(),
    Definition::new("group.consumer.session.timeout.ms", Int, "45000", "The session of a member of a consumer group.").rule(AtLeast(1)).at_start(),
    Definition::new("group.consumer.min.session.timeout.ms", Int, "45000", "The lower bound of a group's consumer.session.timeout.ms.").rule(AtLeast(1)).at_start(),
    Definition::new("group.consumer.max.session.timeout.ms", Int, "60000", "The upper bound of a group's consumer.session.timeout.ms.").rule(AtLeast(1)).at_start(),
    Definition::new("group.consumer.heartbeat.interval.ms", Int, "5000", "How often a member of a consumer group sends a heartbeat: the longest interval, which is shortened as far as the load allows.").rule(AtLeast(1)).at_start(),
    Definition::new("kohort.group.consumer.shortest.heartbeat.interval.ms", Int, "250", "The shortest interval between heartbeats of a member of a consumer group. With group.consumer.heartbeat.interval.ms or more, the interval does not change.").rule(AtLeast(10)),
    Definition::new("kohort.group.consumer.heartbeats.per.second", Int, "1000", "How many heartbeats of consumer groups per second the broker asks for. Beyond it, intervals grow up to group.consumer.heartbeat.interval.ms.").rule(AtLeast(1)),
    Definition::new("group.consumer.min.heartbeat.interval.ms", Int, "5000", "The lower bound of a group's consumer.heartbeat.interval.ms.").rule(AtLeast(1)).at_start(),
    Definition::new("group.consumer.max.heartbeat.interval.ms", Int, "15000", "The upper bound of a group's consumer.heartbeat.interval.ms.").rule(AtLeast(1)).at_start(),
    Definition::new("kohort.group.consumer.connection.grace.ms", Int, "10000", "How long a member of a consumer group without group.instance.id may be away whose connection has closed, before it is given up; 0 for as long as its session lasts.").rule(AtLeast(0)),
    Definition::new("group.consumer.assignment.interval.ms", Int, "1000", "The least time between two assignments of a consumer group.").rule(AtLeast(0)).at_start(),
    Definition::new("group.consumer.min.assignment.interval.ms", Int, "0", "The lower bound of a group's consumer.assignment.interval.ms.").rule(AtLeast(0)).at_start(),
    Definition::new("group.consumer.max.assignment.interval.ms", Int, "15000", "The upper bound of a group's consumer.assignment.interval.ms.").rule(AtLeast(0)).at_start(),
    Definition::new("group.consumer.max.size", Int, "2147483647", "The most members of a consumer group.").rule(AtLeast(1)).at_start(),
    Definition::new("group.consumer.assignors", List, "uniform,range", "The assignors of consumer groups; the first is the default.").rule(OneOrMoreOf(AssignorName::WORDS)).at_start(),
    Definition::new("group.consumer.migration.policy", Text, "bidirectional", "Whether groups with members may change between the protocols.").rule(OneOf(Migration::WORDS)).at_start(),
    Definition::new("group.consumer.regex.refresh.interval.ms", Int, "600000", "How often the topics that a regular expression matches are looked up again.").rule(AtLeast(10_000)).at_start(),
    Definition::new("kohort.group.member.metadata.max.bytes", Int, MIB, "The most bytes of metadata that one member of a group may bring.").rule(AtLeast(1024)).at_start(),
    Definition::new("kohort.group.member.topics.max", Int, "20000", "The largest number of topics that one member of a group may name.").rule(AtLeast(1)).at_start(),
    Definition::new("kohort.group.member.assignment.max.bytes", Int, "4194304", "The largest assignment that the leader of a classic group may send for one member.").rule(AtLeast(1024)).at_start(),
    Definition::new("kohort.group.topics.max", Int, "50000", "The largest number of different topics that the members of one consumer group may name.").rule(AtLeast(1)).at_start(),
    Definition::new("kohort.group.metadata.max.bytes", Int, "67108864", "The largest total size of the members of one group: their ids and metadata and, in a classic group, their assignments.").rule(Between(1 << 20, 128 << 20)).at_start(),
    Definition::new("kohort.group.rewind.unmarked.commits", Bool, "false", "Whether an administrator's commit rewinds a group that has members although its metadata does not begin with kohort:rewind: for user interfaces that cannot set metadata. A consumer without a group membership that shares the group's id by mistake sends the same."),
    Definition::new("kohort.group.events.enable", Bool, "true", "Whether what happens to groups is kept in the topic __kohort_group_events. It is logged in any case."),
    Definition::new("kohort.group.events.retention.ms", Long, "604800000", "The retention.ms that __kohort_group_events gets when it is created. Afterwards it is the topic's own.").rule(AtLeast(-1)).at_start(),
    Definition::new("kohort.group.new.partitions.from.start", Bool, "true", "Whether groups start new partitions of their topics at the first record, whatever auto.offset.reset says."),
    Definition::new("offset.metadata.max.bytes", Int, "4096", "The most bytes of metadata of a committed offset.").rule(AtLeast(0)).at_start(),
    Definition::new("offsets.retention.minutes", Int, "10080", "How long committed offsets outlive the use of their group.").rule(AtLeast(1)).at_start(),
    Definition::new("offsets.retention.check.interval.ms", Long, "600000", "How often offsets are looked through for expired ones.").rule(AtLeast(1)).at_start(),
    Definition::new("offsets.topic.num.partitions", Int, "50", "How many partitions __consumer_offsets gets when it is created. Never changed afterwards.").rule(Between(1, 10_000)).at_start(),
    Definition::new("offsets.topic.segment.bytes", Int, "104857600", "The size of the segments of __consumer_offsets.").rule(AtLeast(1 << 20)).at_start(),
],
};
