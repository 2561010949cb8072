//! Every future may be spawned: this has to compile.

use kohort::{Admin, Consumer, OffsetSpec, Producer, ProducerRecord, TopicPartition};

fn send<T: Send>(_: T) {}

#[allow(dead_code)]
fn futures_can_be_spawned(admin: Admin, mut consumer: Consumer, producer: Producer) {
    let partition = TopicPartition::new("t", 0);
    send(admin.list_offsets(
        &[(partition.clone(), OffsetSpec::Latest)],
        Default::default(),
    ));
    send(admin.delete_records(&[(partition.clone(), 1)]));
    send(admin.create_topics(&[], false));
    send(admin.delete_topic("t"));
    send(admin.create_partitions("t", 2));
    send(admin.describe_topics(&[]));
    send(admin.describe_configs(&[], false));
    send(admin.list_groups(&Default::default()));
    send(admin.describe_groups(&[]));
    send(admin.delete_groups(&[]));
    send(admin.remove_members("g", &[], ""));
    send(admin.list_group_offsets("g", None));
    send(admin.alter_group_offsets("g", &[]));
    send(admin.delete_group_offsets("g", &[]));
    send(admin.describe_cluster());
    send(producer.send(ProducerRecord::new("t")));
    send(producer.flush());
    send(consumer.poll());
    send(consumer.stream());
    send(consumer.commit());
    send(consumer.unsubscribe());
    send(consumer.committed(&[]));
    send(consumer.list_offsets(&[]));
    send(consumer.close());
    send(producer);
}

#[test]
fn every_future_may_be_spawned() {}
