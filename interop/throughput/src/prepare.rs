//! Making and deleting the topic.

use kohort::{Admin, ClientConfig, admin::NewTopic};

use crate::Arguments;

async fn admin(arguments: &Arguments) -> Admin {
    let config = ClientConfig::new(&arguments.bootstrap_servers);
    Admin::connect(config).await.expect("a cluster")
}

pub(crate) async fn create(arguments: &Arguments, partitions: i32) {
    let topic = NewTopic::new(arguments.topic.as_str(), partitions);
    let created = admin(arguments).await.create_topic(&topic).await;
    created.expect("created");
}

pub(crate) async fn delete(arguments: &Arguments) {
    let deleted = admin(arguments).await.delete_topic(&arguments.topic).await;
    deleted.expect("deleted");
}
