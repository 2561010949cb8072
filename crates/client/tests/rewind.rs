//! Groups that are rewound while their members run, through the client.

mod common;

use std::{collections::BTreeMap, time::Duration};

use common::{produce, servers, unique, with_topic};
use kohort::{
    Admin, ClientConfig, Consumer, ConsumerConfig, ErrorCode, TopicPartition,
    admin::RewindTo,
    consumer::{AssignmentStrategy, GroupProtocol, OffsetReset},
};
use tokio::time::timeout;

async fn joined(servers: &str, group: &str, topic: &str, way: &Way) -> Consumer {
    let mut config = ConsumerConfig {
        group_protocol: way.protocol,
        offset_reset: OffsetReset::Earliest,
        heartbeat_interval: Duration::from_millis(100),
        ..ConsumerConfig::new(servers).group(group)
    };
    if let Some(strategy) = way.strategy {
        config.assignment_strategies = vec![strategy];
    }
    let consumer = Consumer::connect(config).await.unwrap();
    consumer.subscribe([topic]).unwrap();
    consumer
}

struct Way {
    protocol: GroupProtocol,
    strategy: Option<AssignmentStrategy>,
}

/// Polls until `count` records have come in all; the offsets of each partition, in their order.
async fn read(consumer: &mut Consumer, count: usize) -> BTreeMap<i32, Vec<i64>> {
    let mut offsets: BTreeMap<i32, Vec<i64>> = BTreeMap::new();
    let mut read = 0;
    let reading = async {
        while read < count {
            for record in &consumer.poll().await.unwrap() {
                read += 1;
                offsets
                    .entry(record.partition)
                    .or_default()
                    .push(record.offset);
            }
        }
    };
    let done = timeout(Duration::from_secs(30), reading).await.is_ok();
    assert!(done, "{read} of {count} records came: {offsets:?}");
    offsets
}

/// Polls for a while, and gets nothing.
async fn poll_in_vain(consumer: &mut Consumer) {
    for _ in 0..20 {
        let records = consumer.poll_for(Duration::from_millis(50)).await.unwrap();
        assert_eq!(records.into_iter().count(), 0);
    }
}

#[tokio::test]
async fn a_member_goes_on_at_the_new_offsets_and_elsewhere_where_it_was() {
    let servers = servers().await;
    let ways = [
        (GroupProtocol::Consumer, None),
        (GroupProtocol::Classic, Some(AssignmentStrategy::Range)),
        (
            GroupProtocol::Classic,
            Some(AssignmentStrategy::CooperativeSticky),
        ),
    ];
    for (protocol, strategy) in ways {
        let way = Way { protocol, strategy };
        let (admin, topic) = with_topic(&servers, 3).await;
        for partition in 0..3 {
            produce(&servers, &topic, Some(partition), 0..100).await;
        }
        let group = unique("group");
        let mut consumer = joined(&servers, &group, &topic, &way).await;
        read(&mut consumer, 300).await;
        consumer.commit().await.unwrap();

        let at = |partition: i32| TopicPartition::new(topic.as_str(), partition);
        let goals = [
            (at(0), RewindTo::Offset(40)),
            (at(1), RewindTo::ShiftBy(-10)),
        ];
        let rewinding = admin.rewind_group(&group, &goals);
        let (done, reread) = tokio::join!(rewinding, read(&mut consumer, 70));
        let steps = done.unwrap();
        assert_eq!(
            steps[0].before.as_ref().map(|before| before.offset),
            Some(100)
        );
        assert_eq!(steps[1].to.as_ref().map(|to| to.offset), Some(90));
        let expected = [(0, (40..100).collect()), (1, (90..100).collect())];
        assert_eq!(reread, BTreeMap::from(expected));

        // Through the member itself, and back.
        if strategy == Some(AssignmentStrategy::CooperativeSticky) {
            // Its owners are put out, and lose what they have not committed.
            let _ = consumer.poll_for(Duration::ZERO).await.unwrap();
            consumer.commit().await.unwrap();
        }
        // Through the member itself, which polls no more until it has happened; and back.
        let rewound = consumer.rewind(&[(at(2), RewindTo::Earliest)]).await;
        assert_eq!(rewound.unwrap()[0].to.as_ref().map(|to| to.offset), Some(0));
        let reread = read(&mut consumer, 100).await;
        assert_eq!(reread, BTreeMap::from([(2, (0..100).collect())]));
        let (undone, ()) = tokio::join!(admin.undo_rewind(&group), poll_in_vain(&mut consumer));
        assert_eq!(
            undone.unwrap()[0].to.as_ref().map(|to| to.offset),
            Some(100)
        );
        consumer.close().await.unwrap();
    }
}

#[tokio::test]
async fn a_group_without_members_is_reset_and_what_cannot_be_is_named() {
    let servers = servers().await;
    let (admin, topic) = with_topic(&servers, 1).await;
    produce(&servers, &topic, Some(0), 0..10).await;
    let group = unique("group");
    let partition = TopicPartition::new(topic.as_str(), 0);
    let to = |to: RewindTo| [(partition.clone(), to)];

    let nothing = admin.rewind_group(&group, &to(RewindTo::ShiftBy(1))).await;
    assert!(
        nothing
            .unwrap_err()
            .to_string()
            .contains("committed nothing")
    );
    let outside = admin.rewind_group(&group, &to(RewindTo::Offset(11))).await;
    let outside = outside.unwrap_err().to_string();
    assert!(
        outside.contains("11 is outside of the log, which goes from 0 to 10"),
        "{outside}"
    );
    let goals = to(RewindTo::Offset(11));
    let clamped = admin.plan_rewind(&group, &goals, true).await;
    assert_eq!(clamped.unwrap()[0].to.as_ref().unwrap().offset, 10);
    let absent = [(TopicPartition::new(topic.as_str(), 1), RewindTo::Latest)];
    let absent = admin.rewind_group(&group, &absent).await.unwrap_err();
    assert_eq!(absent.code(), Some(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION));
    assert!(admin.last_rewind(&group).await.unwrap().is_none());
    assert!(admin.undo_rewind(&group).await.is_err());

    let first = admin
        .rewind_group(&group, &to(RewindTo::Timestamp(1_000_004)))
        .await;
    assert_eq!(first.unwrap()[0].to.as_ref().unwrap().offset, 4);
    let ago = RewindTo::Ago(Duration::from_secs(1));
    let second = admin.rewind_group(&group, &to(ago)).await.unwrap();
    assert_eq!(second[0].before.as_ref().unwrap().offset, 4);
    assert_eq!(second[0].to.as_ref().unwrap().offset, 10);
    let undone = admin.undo_rewind(&group).await.unwrap();
    assert_eq!(undone[0].to.as_ref().unwrap().offset, 4);
}

#[tokio::test]
async fn two_rewinds_at_once_happen_one_after_the_other() {
    let servers = servers().await;
    let (admin, topic) = with_topic(&servers, 1).await;
    produce(&servers, &topic, Some(0), 0..10).await;
    let group = unique("group");
    let way = Way {
        protocol: GroupProtocol::Consumer,
        strategy: None,
    };
    let mut consumer = joined(&servers, &group, &topic, &way).await;
    read(&mut consumer, 10).await;
    let other = Admin::connect(ClientConfig::new(&servers)).await.unwrap();
    let to = |offset: i64| {
        [(
            TopicPartition::new(topic.as_str(), 0),
            RewindTo::Offset(offset),
        )]
    };
    let (five, six) = (to(5), to(6));
    let polling = async {
        loop {
            let _ = consumer.poll_for(Duration::from_millis(50)).await.unwrap();
        }
    };
    let both = async {
        tokio::join!(
            admin.rewind_group(&group, &five),
            other.rewind_group(&group, &six)
        )
    };
    tokio::select! {
        (first, second) = both => {
            first.unwrap();
            second.unwrap();
        }
        () = polling => {}
    }
    consumer.close().await.unwrap();
}
