//! Settings of Apache Kafka that mean nothing here, because kohort has no replication, tiered
//! storage, transactions, share groups, streams groups or quotas. They are accepted and shown, so
//! that configurations written for Kafka can be applied as they are.
//!
//! Settings that restrict access, or that say where data is, are not among them: a broker that
//! accepted them without doing what they say would not be what its operator believes.

use super::definition::{Definition, Kind::*};

/// Settings of topics without effect.
pub(crate) const TOPIC: &[Definition] = &[
    Definition::without_effect("errors.deadletterqueue.group.enable", Bool, "false"),
    Definition::without_effect("follower.replication.throttled.replicas", List, ""),
    Definition::without_effect("leader.replication.throttled.replicas", List, ""),
    Definition::without_effect("local.retention.bytes", Long, "-2"),
    Definition::without_effect("local.retention.ms", Long, "-2"),
    Definition::without_effect("max.decompressed.message.bytes", Int, "2147483647"),
    Definition::without_effect("message.downconversion.enable", Bool, "true"),
    Definition::without_effect("remote.copy.lag.bytes", Long, "-1"),
    Definition::without_effect("remote.copy.lag.ms", Long, "0"),
    Definition::without_effect("remote.log.copy.disable", Bool, "false"),
    Definition::without_effect("remote.log.delete.on.disable", Bool, "false"),
    Definition::without_effect("remote.storage.enable", Bool, "false"),
];

/// Settings of groups without effect.
pub(crate) const GROUP: &[Definition] = &[
    Definition::without_effect("consumer.assignor.offload.enable", Bool, "true"),
    Definition::without_effect("errors.deadletterqueue.copy.record.enable", Bool, "false"),
    Definition::without_effect("errors.deadletterqueue.topic.name", Text, ""),
    Definition::without_effect("share.assignment.interval.ms", Int, "1000"),
    Definition::without_effect("share.assignor.offload.enable", Bool, "true"),
    Definition::without_effect("share.auto.offset.reset", Text, "latest"),
    Definition::without_effect("share.delivery.count.limit", Int, "5"),
    Definition::without_effect("share.heartbeat.interval.ms", Int, "5000"),
    Definition::without_effect("share.isolation.level", Text, "read_uncommitted"),
    Definition::without_effect("share.partition.max.record.locks", Int, "2000"),
    Definition::without_effect("share.record.lock.duration.ms", Int, "30000"),
    Definition::without_effect("share.renew.acknowledge.enable", Bool, "true"),
    Definition::without_effect("share.session.timeout.ms", Int, "45000"),
    Definition::without_effect("streams.acceptable.recovery.lag", Long, "10000"),
    Definition::without_effect("streams.assignment.interval.ms", Int, "1000"),
    Definition::without_effect("streams.assignor.name", Text, "").unset(),
    Definition::without_effect("streams.assignor.offload.enable", Bool, "true"),
    Definition::without_effect("streams.heartbeat.interval.ms", Int, "5000"),
    Definition::without_effect("streams.initial.rebalance.delay.ms", Int, "3000"),
    Definition::without_effect("streams.num.standby.replicas", Int, "0"),
    Definition::without_effect("streams.num.warmup.replicas", Int, "2"),
    Definition::without_effect("streams.rack.aware.assignment.tags", List, ""),
    Definition::without_effect("streams.session.timeout.ms", Int, "45000"),
    Definition::without_effect("streams.task.offset.interval.ms", Int, "60000"),
];

/// Settings of the broker without effect.
pub(crate) const BROKER: &[Definition] = &[
    Definition::without_effect("add.partitions.to.txn.retry.backoff.max.ms", Int, "100").at_start(),
    Definition::without_effect("add.partitions.to.txn.retry.backoff.ms", Int, "20").at_start(),
    Definition::without_effect("alter.log.dirs.replication.quota.window.num", Int, "11").at_start(),
    Definition::without_effect(
        "alter.log.dirs.replication.quota.window.size.seconds",
        Int,
        "1",
    )
    .at_start(),
    Definition::without_effect("auto.leader.rebalance.enable", Bool, "true").at_start(),
    Definition::without_effect("background.threads", Int, "10"),
    Definition::without_effect("broker.heartbeat.interval.ms", Int, "2000").at_start(),
    Definition::without_effect("broker.session.timeout.ms", Int, "9000").at_start(),
    Definition::without_effect("controlled.shutdown.enable", Bool, "true").at_start(),
    Definition::without_effect("controller.listener.names", List, "")
        .unset()
        .at_start(),
    Definition::without_effect("controller.quorum.append.linger.ms", Int, "25").at_start(),
    Definition::without_effect("controller.quorum.auto.join.enable", Bool, "false").at_start(),
    Definition::without_effect("controller.quorum.bootstrap.servers", List, "").at_start(),
    Definition::without_effect("controller.quorum.election.backoff.max.ms", Int, "1000").at_start(),
    Definition::without_effect("controller.quorum.election.timeout.ms", Int, "1000").at_start(),
    Definition::without_effect("controller.quorum.fetch.max.bytes", Int, "1048576").at_start(),
    Definition::without_effect("controller.quorum.fetch.snapshot.max.bytes", Int, "1048576")
        .at_start(),
    Definition::without_effect("controller.quorum.fetch.timeout.ms", Int, "2000").at_start(),
    Definition::without_effect("controller.quorum.request.timeout.ms", Int, "2000").at_start(),
    Definition::without_effect("controller.quorum.retry.backoff.ms", Int, "20").at_start(),
    Definition::without_effect("controller.quorum.voters", List, "").at_start(),
    Definition::without_effect("controller.quota.window.num", Int, "11").at_start(),
    Definition::without_effect("controller.quota.window.size.seconds", Int, "1").at_start(),
    Definition::without_effect("controller.socket.timeout.ms", Int, "30000").at_start(),
    Definition::without_effect("delete.records.purgatory.purge.interval.requests", Int, "1")
        .at_start(),
    Definition::without_effect(
        "errors.deadletterqueue.auto.create.topics.enable",
        Bool,
        "false",
    )
    .at_start(),
    Definition::without_effect("errors.deadletterqueue.topic.name.prefix", Text, "dlq.").at_start(),
    Definition::without_effect("fetch.purgatory.purge.interval.requests", Int, "1000").at_start(),
    Definition::without_effect("follower.fetch.last.tiered.offset.enable", Bool, "false"),
    Definition::without_effect(
        "follower.replication.throttled.rate",
        Long,
        "9223372036854775807",
    ),
    Definition::without_effect("group.consumer.assignor.offload.enable", Bool, "true").at_start(),
    Definition::without_effect("group.coordinator.append.linger.ms", Int, "-1").at_start(),
    Definition::without_effect("group.coordinator.background.threads", Int, "2").at_start(),
    Definition::without_effect("group.coordinator.cached.buffer.max.bytes", Int, "1048588")
        .at_start(),
    Definition::without_effect("group.coordinator.threads", Int, "4").at_start(),
    Definition::without_effect("group.share.assignment.interval.ms", Int, "1000").at_start(),
    Definition::without_effect("group.share.assignor.offload.enable", Bool, "true").at_start(),
    Definition::without_effect("group.share.assignors", List, "simple").at_start(),
    Definition::without_effect("group.share.delivery.count.limit", Int, "5").at_start(),
    Definition::without_effect("group.share.heartbeat.interval.ms", Int, "5000").at_start(),
    Definition::without_effect("group.share.max.assignment.interval.ms", Int, "15000").at_start(),
    Definition::without_effect("group.share.max.delivery.count.limit", Int, "10").at_start(),
    Definition::without_effect("group.share.max.heartbeat.interval.ms", Int, "15000").at_start(),
    Definition::without_effect("group.share.max.partition.max.record.locks", Int, "4000")
        .at_start(),
    Definition::without_effect("group.share.max.record.lock.duration.ms", Int, "60000").at_start(),
    Definition::without_effect("group.share.max.session.timeout.ms", Int, "60000").at_start(),
    Definition::without_effect("group.share.max.share.sessions", Int, "2000").at_start(),
    Definition::without_effect("group.share.max.size", Int, "200").at_start(),
    Definition::without_effect("group.share.min.assignment.interval.ms", Int, "0").at_start(),
    Definition::without_effect("group.share.min.delivery.count.limit", Int, "2").at_start(),
    Definition::without_effect("group.share.min.heartbeat.interval.ms", Int, "5000").at_start(),
    Definition::without_effect("group.share.min.partition.max.record.locks", Int, "100").at_start(),
    Definition::without_effect("group.share.min.record.lock.duration.ms", Int, "15000").at_start(),
    Definition::without_effect("group.share.min.session.timeout.ms", Int, "45000").at_start(),
    Definition::without_effect("group.share.partition.max.record.locks", Int, "2000").at_start(),
    Definition::without_effect("group.share.record.lock.duration.ms", Int, "30000").at_start(),
    Definition::without_effect("group.share.session.timeout.ms", Int, "45000").at_start(),
    Definition::without_effect("group.streams.acceptable.recovery.lag", Long, "10000").at_start(),
    Definition::without_effect("group.streams.assignment.interval.ms", Int, "1000").at_start(),
    Definition::without_effect("group.streams.assignor.offload.enable", Bool, "true").at_start(),
    Definition::without_effect("group.streams.assignors", List, "sticky").at_start(),
    Definition::without_effect("group.streams.heartbeat.interval.ms", Int, "5000").at_start(),
    Definition::without_effect("group.streams.initial.rebalance.delay.ms", Int, "3000").at_start(),
    Definition::without_effect("group.streams.max.assignment.interval.ms", Int, "15000").at_start(),
    Definition::without_effect("group.streams.max.heartbeat.interval.ms", Int, "15000").at_start(),
    Definition::without_effect("group.streams.max.session.timeout.ms", Int, "60000").at_start(),
    Definition::without_effect("group.streams.max.size", Int, "2147483647").at_start(),
    Definition::without_effect("group.streams.max.standby.replicas", Int, "2").at_start(),
    Definition::without_effect("group.streams.max.warmup.replicas", Int, "20").at_start(),
    Definition::without_effect("group.streams.min.assignment.interval.ms", Int, "0").at_start(),
    Definition::without_effect("group.streams.min.heartbeat.interval.ms", Int, "5000").at_start(),
    Definition::without_effect("group.streams.min.session.timeout.ms", Int, "45000").at_start(),
    Definition::without_effect("group.streams.min.task.offset.interval.ms", Int, "15000")
        .at_start(),
    Definition::without_effect("group.streams.num.standby.replicas", Int, "0").at_start(),
    Definition::without_effect("group.streams.num.warmup.replicas", Int, "2").at_start(),
    Definition::without_effect("group.streams.rack.aware.assignment.tags", List, "").at_start(),
    Definition::without_effect("group.streams.session.timeout.ms", Int, "45000").at_start(),
    Definition::without_effect("group.streams.task.offset.interval.ms", Int, "60000").at_start(),
    Definition::without_effect("initial.broker.registration.timeout.ms", Int, "60000").at_start(),
    Definition::without_effect("kafka.metrics.polling.interval.secs", Int, "10").at_start(),
    Definition::without_effect("kafka.metrics.reporters", List, "").at_start(),
    Definition::without_effect("leader.imbalance.check.interval.seconds", Long, "300").at_start(),
    Definition::without_effect(
        "leader.replication.throttled.rate",
        Long,
        "9223372036854775807",
    ),
    Definition::without_effect("log.cleaner.dedupe.buffer.size", Long, "134217728").at_start(),
    Definition::without_effect("log.cleaner.enable", Bool, "true").at_start(),
    Definition::without_effect("log.cleaner.io.buffer.load.factor", Double, "0.9").at_start(),
    Definition::without_effect("log.cleaner.io.buffer.size", Int, "524288").at_start(),
    Definition::without_effect(
        "log.cleaner.io.max.bytes.per.second",
        Double,
        "1.7976931348623157E308",
    )
    .at_start(),
    Definition::without_effect("log.cleaner.threads", Int, "1").at_start(),
    Definition::without_effect("log.dir.failure.timeout.ms", Long, "30000").at_start(),
    Definition::without_effect("log.flush.offset.checkpoint.interval.ms", Int, "60000").at_start(),
    Definition::without_effect(
        "log.flush.start.offset.checkpoint.interval.ms",
        Int,
        "60000",
    )
    .at_start(),
    Definition::without_effect("log.local.retention.bytes", Long, "-2"),
    Definition::without_effect("log.local.retention.ms", Long, "-2"),
    Definition::without_effect("log.remote.copy.lag.bytes", Long, "-1"),
    Definition::without_effect("log.remote.copy.lag.ms", Long, "0"),
    Definition::without_effect("max.request.partition.size.limit", Int, "2000").at_start(),
    Definition::without_effect("metadata.log.dir", Text, "")
        .unset()
        .at_start(),
    Definition::without_effect(
        "metadata.log.max.record.bytes.between.snapshots",
        Long,
        "20971520",
    )
    .at_start(),
    Definition::without_effect("metadata.log.max.snapshot.interval.ms", Long, "3600000").at_start(),
    Definition::without_effect("metadata.log.segment.bytes", Int, "1073741824").at_start(),
    Definition::without_effect("metadata.log.segment.ms", Long, "604800000").at_start(),
    Definition::without_effect("metadata.max.idle.interval.ms", Int, "500").at_start(),
    Definition::without_effect("metadata.max.retention.bytes", Long, "104857600").at_start(),
    Definition::without_effect("metadata.max.retention.ms", Long, "604800000").at_start(),
    Definition::without_effect(
        "metric.reporters",
        List,
        "org.apache.kafka.common.metrics.JmxReporter",
    ),
    Definition::without_effect("metrics.num.samples", Int, "2").at_start(),
    Definition::without_effect("metrics.recording.level", Text, "INFO").at_start(),
    Definition::without_effect("metrics.sample.window.ms", Long, "30000").at_start(),
    Definition::without_effect("num.io.threads", Int, "8"),
    Definition::without_effect("num.network.threads", Int, "3"),
    Definition::without_effect("num.recovery.threads.per.data.dir", Int, "2"),
    Definition::without_effect("num.replica.alter.log.dirs.threads", Int, "")
        .unset()
        .at_start(),
    Definition::without_effect("num.replica.fetchers", Int, "1"),
    Definition::without_effect("offsets.commit.timeout.ms", Int, "5000").at_start(),
    Definition::without_effect("offsets.load.buffer.size", Int, "5242880").at_start(),
    Definition::without_effect("offsets.topic.compression.codec", Int, "0").at_start(),
    Definition::without_effect("offsets.topic.replication.factor", Int, "3").at_start(),
    Definition::without_effect("process.roles", List, "")
        .unset()
        .at_start(),
    Definition::without_effect("producer.purgatory.purge.interval.requests", Int, "1000")
        .at_start(),
    Definition::without_effect("queued.max.requests", Int, "500").at_start(),
    Definition::without_effect("quota.window.num", Int, "11").at_start(),
    Definition::without_effect("quota.window.size.seconds", Int, "1").at_start(),
    Definition::without_effect("remote.fetch.max.wait.ms", Int, "500"),
    Definition::without_effect("remote.list.offsets.request.timeout.ms", Long, "30000"),
    Definition::without_effect(
        "remote.log.index.file.cache.total.size.bytes",
        Long,
        "1073741824",
    ),
    Definition::without_effect("remote.log.manager.copier.thread.pool.size", Int, "10"),
    Definition::without_effect(
        "remote.log.manager.copy.max.bytes.per.second",
        Long,
        "9223372036854775807",
    ),
    Definition::without_effect("remote.log.manager.copy.quota.window.num", Int, "11").at_start(),
    Definition::without_effect(
        "remote.log.manager.copy.quota.window.size.seconds",
        Int,
        "1",
    )
    .at_start(),
    Definition::without_effect("remote.log.manager.expiration.thread.pool.size", Int, "10"),
    Definition::without_effect(
        "remote.log.manager.fetch.max.bytes.per.second",
        Long,
        "9223372036854775807",
    ),
    Definition::without_effect("remote.log.manager.fetch.quota.window.num", Int, "11").at_start(),
    Definition::without_effect(
        "remote.log.manager.fetch.quota.window.size.seconds",
        Int,
        "1",
    )
    .at_start(),
    Definition::without_effect("remote.log.manager.follower.thread.pool.size", Int, "2"),
    Definition::without_effect("remote.log.manager.task.interval.ms", Long, "30000").at_start(),
    Definition::without_effect("remote.log.manager.thread.pool.size", Int, "2").at_start(),
    Definition::without_effect("remote.log.metadata.custom.metadata.max.bytes", Int, "128")
        .at_start(),
    Definition::without_effect(
        "remote.log.metadata.manager.class.name",
        Text,
        "org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager",
    )
    .at_start(),
    Definition::without_effect("remote.log.metadata.manager.class.path", Text, "")
        .unset()
        .at_start(),
    Definition::without_effect(
        "remote.log.metadata.manager.impl.prefix",
        Text,
        "rlmm.config.",
    )
    .at_start(),
    Definition::without_effect("remote.log.metadata.manager.listener.name", Text, "")
        .unset()
        .at_start(),
    Definition::without_effect("remote.log.reader.max.pending.tasks", Int, "100").at_start(),
    Definition::without_effect("remote.log.reader.threads", Int, "10"),
    Definition::without_effect("remote.log.storage.manager.class.name", Text, "")
        .unset()
        .at_start(),
    Definition::without_effect("remote.log.storage.manager.class.path", Text, "")
        .unset()
        .at_start(),
    Definition::without_effect(
        "remote.log.storage.manager.impl.prefix",
        Text,
        "rsm.config.",
    )
    .at_start(),
    Definition::without_effect("remote.log.storage.system.enable", Bool, "false").at_start(),
    Definition::without_effect(
        "replica.alter.log.dirs.io.max.bytes.per.second",
        Long,
        "9223372036854775807",
    ),
    Definition::without_effect("replica.fetch.backoff.ms", Int, "1000").at_start(),
    Definition::without_effect("replica.fetch.max.bytes", Int, "1048576").at_start(),
    Definition::without_effect("replica.fetch.min.bytes", Int, "1").at_start(),
    Definition::without_effect("replica.fetch.response.max.bytes", Int, "10485760").at_start(),
    Definition::without_effect("replica.fetch.wait.max.ms", Int, "500").at_start(),
    Definition::without_effect(
        "replica.high.watermark.checkpoint.interval.ms",
        Long,
        "5000",
    )
    .at_start(),
    Definition::without_effect("replica.lag.time.max.ms", Long, "30000").at_start(),
    Definition::without_effect("replica.selector.class", Text, "")
        .unset()
        .at_start(),
    Definition::without_effect("replica.socket.receive.buffer.bytes", Int, "65536").at_start(),
    Definition::without_effect("replica.socket.timeout.ms", Int, "30000").at_start(),
    Definition::without_effect("replication.quota.window.num", Int, "11").at_start(),
    Definition::without_effect("replication.quota.window.size.seconds", Int, "1").at_start(),
    Definition::without_effect("request.timeout.ms", Int, "30000").at_start(),
    Definition::without_effect("share.coordinator.append.linger.ms", Int, "-1").at_start(),
    Definition::without_effect("share.coordinator.cached.buffer.max.bytes", Int, "1048588")
        .at_start(),
    Definition::without_effect("share.coordinator.load.buffer.size", Int, "5242880").at_start(),
    Definition::without_effect(
        "share.coordinator.snapshot.update.records.per.snapshot",
        Int,
        "500",
    )
    .at_start(),
    Definition::without_effect("share.coordinator.state.topic.compression.codec", Int, "0")
        .at_start(),
    Definition::without_effect("share.coordinator.state.topic.min.isr", Int, "2").at_start(),
    Definition::without_effect("share.coordinator.state.topic.num.partitions", Int, "50")
        .at_start(),
    Definition::without_effect("share.coordinator.state.topic.replication.factor", Int, "3")
        .at_start(),
    Definition::without_effect(
        "share.coordinator.state.topic.segment.bytes",
        Int,
        "104857600",
    )
    .at_start(),
    Definition::without_effect("share.coordinator.threads", Int, "1").at_start(),
    Definition::without_effect("share.coordinator.write.timeout.ms", Int, "5000").at_start(),
    Definition::without_effect("share.fetch.purgatory.purge.interval.requests", Int, "1000")
        .at_start(),
    Definition::without_effect("socket.connection.setup.timeout.max.ms", Long, "30000").at_start(),
    Definition::without_effect("socket.connection.setup.timeout.ms", Long, "10000").at_start(),
    Definition::without_effect("socket.receive.buffer.bytes", Int, "102400").at_start(),
    Definition::without_effect("socket.send.buffer.bytes", Int, "102400").at_start(),
    Definition::without_effect("telemetry.max.bytes", Int, "1048576").at_start(),
    Definition::without_effect(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        Int,
        "10000",
    )
    .at_start(),
    Definition::without_effect("transaction.max.timeout.ms", Int, "900000").at_start(),
    Definition::without_effect("transaction.partition.verification.enable", Bool, "true"),
    Definition::without_effect(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        Int,
        "3600000",
    )
    .at_start(),
    Definition::without_effect("transaction.state.log.load.buffer.size", Int, "5242880").at_start(),
    Definition::without_effect("transaction.state.log.min.isr", Int, "2").at_start(),
    Definition::without_effect("transaction.state.log.num.partitions", Int, "50").at_start(),
    Definition::without_effect("transaction.state.log.replication.factor", Int, "3").at_start(),
    Definition::without_effect("transaction.state.log.segment.bytes", Int, "104857600").at_start(),
    Definition::without_effect("transaction.two.phase.commit.enable", Bool, "false").at_start(),
    Definition::without_effect("transactional.id.expiration.ms", Int, "604800000").at_start(),
];
