//! Consumers as members of groups of both protocols, against a broker.

mod common;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use common::{produce, servers, unique, until, with_topic};
use kohort::{
    Consumer, ConsumerConfig, TopicPartition,
    admin::GroupType,
    consumer::{
        AssignmentStrategy, GroupProtocol, OffsetReset, Rebalance, RebalanceHandler, Subscription,
    },
};
use parking_lot::Mutex;
use tokio::time::timeout;

const PROTOCOLS: [GroupProtocol; 2] = [GroupProtocol::Consumer, GroupProtocol::Classic];

fn config(servers: &str, group: &str, group_protocol: GroupProtocol) -> ConsumerConfig {
    ConsumerConfig {
        group_protocol,
        offset_reset: OffsetReset::Earliest,
        heartbeat_interval: Duration::from_millis(300),
        ..ConsumerConfig::new(servers).group(group)
    }
}

async fn joined(config: ConsumerConfig, topic: &str) -> Consumer {
    let consumer = Consumer::connect(config).await.unwrap();
    consumer.subscribe([topic]).unwrap();
    consumer
}

/// Polls until so many records have come; returns their values.
async fn values(consumer: &mut Consumer, count: usize) -> BTreeSet<i64> {
    let mut values = BTreeSet::new();
    let reading = async {
        while values.len() < count {
            for record in &consumer.poll().await.unwrap() {
                let value = std::str::from_utf8(record.value.unwrap()).unwrap();
                assert!(values.insert(value.parse().unwrap()), "{value} came twice");
            }
        }
    };
    let done = timeout(Duration::from_secs(30), reading).await.is_ok();
    assert!(done, "{} of {count} records came", values.len());
    values
}

#[tokio::test]
async fn a_group_of_one_reads_everything_and_the_next_one_goes_on_where_it_stopped() {
    let servers = servers().await;
    for protocol in PROTOCOLS {
        let (admin, topic) = with_topic(&servers, 3).await;
        produce(&servers, &topic, None, 0..1000).await;
        let group = unique("group");
        let mut consumer = joined(config(&servers, &group, protocol), &topic).await;
        assert_eq!(values(&mut consumer, 1000).await.len(), 1000);
        let listed = admin.list_groups(&Default::default()).await.unwrap();
        let listed = listed
            .iter()
            .find(|listed| *listed.group_id == *group)
            .unwrap();
        let expected = match protocol {
            GroupProtocol::Classic => GroupType::Classic,
            _ => GroupType::Consumer,
        };
        assert_eq!(listed.group_type, expected);
        let described = admin.describe_group(&group).await.unwrap();
        assert_eq!(described.members.len(), 1);
        assert_eq!(described.members[0].assignment.len(), 3);
        consumer.finish();
        consumer.close().await.unwrap();
        assert!(
            admin
                .describe_group(&group)
                .await
                .unwrap()
                .members
                .is_empty()
        );

        produce(&servers, &topic, None, 1000..1010).await;
        let mut consumer = joined(config(&servers, &group, protocol), &topic).await;
        assert_eq!(values(&mut consumer, 10).await, (1000..1010).collect());
        consumer.close().await.unwrap();
    }
}

#[derive(Default)]
struct Seen(Mutex<Vec<(&'static str, Vec<TopicPartition>)>>);

struct Handler(Arc<Seen>);

impl RebalanceHandler for Handler {
    async fn assigned(&self, rebalance: &Rebalance) {
        let partitions = rebalance.partitions().to_vec();
        self.0.0.lock().push(("assigned", partitions));
    }

    async fn revoked(&self, rebalance: &Rebalance) {
        let partitions = rebalance.partitions().to_vec();
        self.0.0.lock().push(("revoked", partitions));
    }

    async fn lost(&self, rebalance: &Rebalance) {
        let partitions = rebalance.partitions().to_vec();
        self.0.0.lock().push(("lost", partitions));
    }
}

/// Polls for as long as it is not stopped.
fn keep_polling(mut consumer: Consumer) -> tokio::task::JoinHandle<()> {
    tokio::spawn(async move {
        loop {
            consumer.poll().await.unwrap();
        }
    })
}

#[tokio::test]
async fn two_members_share_the_partitions_and_one_that_leaves_gives_its_own_back() {
    let servers = servers().await;
    let all = [
        (GroupProtocol::Consumer, AssignmentStrategy::Range),
        (GroupProtocol::Classic, AssignmentStrategy::Range),
        (GroupProtocol::Classic, AssignmentStrategy::RoundRobin),
        (GroupProtocol::Classic, AssignmentStrategy::Sticky),
        (
            GroupProtocol::Classic,
            AssignmentStrategy::CooperativeSticky,
        ),
    ];
    for (protocol, strategy) in all {
        let (_, topic) = with_topic(&servers, 4).await;
        let group = unique("group");
        let config = ConsumerConfig {
            assignment_strategies: vec![strategy],
            ..config(&servers, &group, protocol)
        };
        let seen = Arc::new(Seen::default());
        let first = Consumer::connect(config.clone()).await.unwrap();
        first.set_rebalance_handler(Handler(seen.clone())).unwrap();
        first.subscribe([topic.as_str()]).unwrap();
        let polling = keep_polling(first.clone());
        until(async || first.assignment().len() == 4).await;
        let second = joined(config, &topic).await;
        let polling_too = keep_polling(second.clone());
        until(async || first.assignment().len() == 2 && second.assignment().len() == 2).await;
        let assigned: BTreeSet<_> = first
            .assignment()
            .into_iter()
            .chain(second.assignment())
            .collect();
        assert_eq!(assigned.len(), 4, "{protocol:?} {strategy:?}");

        polling_too.abort();
        let _ = polling_too.await;
        second.close().await.unwrap();
        until(async || first.assignment().len() == 4).await;
        polling.abort();
        let _ = polling.await;
        first.close().await.unwrap();
        let seen = seen.0.lock();
        let cooperative = strategy == AssignmentStrategy::CooperativeSticky
            || protocol == GroupProtocol::Consumer;
        let revoked: Vec<_> = seen.iter().filter(|(what, _)| *what == "revoked").collect();
        assert_eq!(revoked[0].1.len(), if cooperative { 2 } else { 4 });
        assert!(seen.iter().all(|(what, _)| *what != "lost"), "{seen:?}");
    }
}

#[tokio::test]
async fn a_regular_expression_finds_topics_that_come_later() {
    let servers = servers().await;
    for protocol in PROTOCOLS {
        let prefix = unique("regex");
        let mut config = config(&servers, &unique("group"), protocol);
        config.client.metadata_max_age = Duration::from_millis(200);
        let consumer = Consumer::connect(config).await.unwrap();
        consumer.subscribe_regex(format!("{prefix}.*")).unwrap();
        let polling = keep_polling(consumer.clone());
        let (admin, _) = with_topic(&servers, 1).await;
        let topic = format!("{prefix}-topic");
        let new = kohort::admin::NewTopic::new(topic.as_str(), 2);
        admin.create_topic(&new).await.unwrap();
        until(async || consumer.assignment().len() == 2).await;
        polling.abort();
    }
}

#[tokio::test]
async fn a_topic_that_comes_after_it_was_subscribed_is_read() {
    let servers = servers().await;
    for protocol in PROTOCOLS {
        let mut config = config(&servers, &unique("group"), protocol);
        config.client.metadata_max_age = Duration::from_millis(200);
        let (admin, first) = with_topic(&servers, 1).await;
        let later = unique("later");
        let consumer = Consumer::connect(config).await.unwrap();
        consumer.subscribe([first.as_str(), &later]).unwrap();
        let polling = keep_polling(consumer.clone());
        until(async || consumer.assignment().len() == 1).await;
        let new = kohort::admin::NewTopic::new(later.as_str(), 2);
        admin.create_topic(&new).await.unwrap();
        until(async || consumer.assignment().len() == 3).await;
        polling.abort();
    }
}

/// rust-rdkafka #509, #611
#[tokio::test]
async fn dropping_a_consumer_returns_at_once_and_its_partitions_go_to_others() {
    let servers = servers().await;
    for protocol in PROTOCOLS {
        let (_, topic) = with_topic(&servers, 2).await;
        let group = unique("group");
        let mut first = joined(config(&servers, &group, protocol), &topic).await;
        let _ = first.poll_for(Duration::from_secs(1)).await.unwrap();
        until(async || first.assignment().len() == 2).await;
        let before = std::time::Instant::now();
        drop(first);
        assert!(before.elapsed() < Duration::from_secs(1));
        let second = joined(config(&servers, &group, protocol), &topic).await;
        let polling = keep_polling(second.clone());
        until(async || second.assignment().len() == 2).await;
        polling.abort();
    }
}

/// KAFKA-19357
#[tokio::test]
async fn closing_does_not_hang_when_there_is_no_coordinator() {
    for protocol in PROTOCOLS {
        let mut consumer = Consumer::new(config("127.0.0.1:1", "group", protocol)).unwrap();
        consumer.subscribe(["topic"]).unwrap();
        let _ = consumer.poll_for(Duration::from_millis(100)).await;
        let before = std::time::Instant::now();
        let _ = consumer.close_within(Duration::from_millis(300)).await;
        assert!(before.elapsed() < Duration::from_secs(5));
    }
}

#[tokio::test]
async fn an_application_that_is_away_for_too_long_loses_its_partitions_and_gets_them_back() {
    let servers = servers().await;
    for protocol in PROTOCOLS {
        let (admin, topic) = with_topic(&servers, 2).await;
        let group = unique("group");
        let config = ConsumerConfig {
            poll_interval_max: Duration::from_millis(1500),
            ..config(&servers, &group, protocol)
        };
        let seen = Arc::new(Seen::default());
        let mut consumer = Consumer::connect(config).await.unwrap();
        consumer
            .set_rebalance_handler(Handler(seen.clone()))
            .unwrap();
        consumer.subscribe([topic.as_str()]).unwrap();
        until(async || {
            let _ = consumer.poll_for(Duration::from_millis(20)).await.unwrap();
            consumer.assignment().len() == 2
        })
        .await;
        until(async || consumer.assignment().is_empty()).await;
        until(async || {
            admin
                .describe_group(&group)
                .await
                .unwrap()
                .members
                .is_empty()
        })
        .await;
        until(async || {
            let _ = consumer.poll_for(Duration::from_millis(20)).await.unwrap();
            consumer.assignment().len() == 2
        })
        .await;
        let what: Vec<_> = seen.0.lock().iter().map(|(what, _)| *what).collect();
        assert_eq!(what, ["assigned", "lost", "assigned"]);
        consumer.close().await.unwrap();
    }
}

#[tokio::test]
async fn a_consumer_that_the_coordinator_refuses_says_so_and_can_subscribe_again() {
    let servers = servers().await;
    let (_, topic) = with_topic(&servers, 1).await;
    let config = ConsumerConfig {
        group_remote_assignor: Some("absent".into()),
        ..config(&servers, &unique("group"), GroupProtocol::Consumer)
    };
    let mut consumer = Consumer::connect(config).await.unwrap();
    for _ in 0..2 {
        consumer.subscribe([topic.as_str()]).unwrap();
        let error = timeout(Duration::from_secs(30), consumer.poll())
            .await
            .unwrap()
            .unwrap_err();
        assert_eq!(
            error.code(),
            Some(kohort::ErrorCode::UNSUPPORTED_ASSIGNOR),
            "{error}"
        );
    }
    consumer.close_within(Duration::from_secs(1)).await.unwrap();
}

#[tokio::test]
async fn values_are_read_as_json() {
    let servers = servers().await;
    let (_, topic) = with_topic(&servers, 1).await;
    produce(&servers, &topic, Some(0), 7..8).await;
    let mut consumer = Consumer::connect(ConsumerConfig::new(&servers))
        .await
        .unwrap();
    let partition = TopicPartition::new(topic.as_str(), 0);
    consumer
        .assign([(partition, kohort::consumer::Seek::Earliest)])
        .unwrap();
    let records = consumer.poll().await.unwrap();
    let record = records.iter().next().unwrap();
    assert_eq!(record.json::<u32>().unwrap(), Some(7));
    assert_eq!(record.to_owned().json::<u32>().unwrap(), Some(7));
}

#[tokio::test]
async fn a_consumer_tells_what_it_subscribes_to_and_as_which_member() {
    let servers = servers().await;
    for protocol in PROTOCOLS {
        let (admin, topic) = with_topic(&servers, 1).await;
        let group = unique("group");
        let consumer = Consumer::connect(config(&servers, &group, protocol)).await;
        let consumer = consumer.unwrap();
        assert_eq!(consumer.subscription(), None);
        assert_eq!(consumer.group_metadata(), None);
        consumer.subscribe([topic.as_str()]).unwrap();
        let expected = Subscription::Topics(vec![topic.as_str().into()]);
        assert_eq!(consumer.subscription(), Some(expected));
        let polling = keep_polling(consumer.clone());
        until(async || consumer.assignment().len() == 1).await;
        let member = consumer.group_metadata().unwrap();
        let described = admin.describe_group(&group).await.unwrap();
        assert_eq!(member.member_id, described.members[0].member_id);
        assert_eq!(member.group_id, group.as_str());
        assert!(member.generation_id > 0);
        polling.abort();
        consumer.unsubscribe().await.unwrap();
        assert_eq!(consumer.subscription(), None);
    }
}
