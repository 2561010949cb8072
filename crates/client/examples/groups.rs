//! Lists the groups of a cluster, asking every broker at once.
//!
//! `cargo run --example groups -- localhost:9092`

use kohort::rpc::{ClientConfig, Cluster, Destination, messages::ListGroupsRequest};

#[tokio::main]
async fn main() -> kohort::Result<()> {
    let servers = std::env::args()
        .nth(1)
        .unwrap_or("localhost:9092".to_owned());
    let cluster = Cluster::connect(ClientConfig::new(&servers)).await?;
    let mut answers = Vec::new();
    for broker in cluster.metadata().brokers() {
        let to = Destination::Broker(broker.id);
        answers.push(cluster.send(&to, &ListGroupsRequest::default()).await?);
    }
    for answer in answers {
        for group in answer.await?.groups {
            println!(
                "{}\t{}\t{}",
                group.group_id, group.group_type, group.group_state
            );
        }
    }
    Ok(())
}
