//! Creates a topic if it does not exist, and prints the lag of each group.
//!
//! `cargo run --example admin -- localhost:9092 TOPIC`

use kohort::{
    Admin, ClientConfig, ErrorCode, IsolationLevel, OffsetSpec,
    admin::{GroupFilter, NewTopic},
};

#[tokio::main]
async fn main() -> kohort::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (Some(servers), Some(topic)) = (arguments.next(), arguments.next()) else {
        eprintln!("usage: admin SERVERS TOPIC");
        std::process::exit(2);
    };
    for (group, lag) in run(&servers, &topic).await? {
        println!("{group}: {lag} records behind");
    }
    Ok(())
}

/// Returns the groups of the cluster with their lag.
pub(crate) async fn run(servers: &str, topic: &str) -> kohort::Result<Vec<(String, i64)>> {
    let admin = Admin::connect(ClientConfig::new(servers)).await?;
    match admin.create_topic(&NewTopic::new(topic, 3)).await {
        Ok(_) => println!("created {topic}"),
        Err(error) if error.code() == Some(ErrorCode::TOPIC_ALREADY_EXISTS) => {}
        Err(error) => return Err(error),
    }
    let mut lags = Vec::new();
    for group in admin.list_groups(&GroupFilter::default()).await? {
        let mut committed = Vec::new();
        for (partition, offset) in admin.list_group_offsets(&group.group_id, None).await? {
            committed.extend(offset?.map(|offset| (partition, offset.offset)));
        }
        let ends = committed
            .iter()
            .map(|(partition, _)| (partition.clone(), OffsetSpec::Latest));
        let ends: Vec<_> = ends.collect();
        let ends = admin
            .list_offsets(&ends, IsolationLevel::ReadUncommitted)
            .await;
        let mut lag = 0;
        for ((_, end), (_, offset)) in ends.into_iter().zip(&committed) {
            lag += end?.offset.map_or(0, |end| (end - offset).max(0));
        }
        lags.push((group.group_id.to_string(), lag));
    }
    Ok(lags)
}
