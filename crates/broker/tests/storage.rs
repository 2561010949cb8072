//! What is kept in a folder, and what happens when the folder is not well.

mod common;

use std::{fs, path::Path, time::Duration};

use common::*;
use kohort_broker::{Broker, StartError};
use kohort_wire::{ErrorCode, messages::DeleteTopicsRequest};

async fn start(folder: &Path) -> Result<Broker, StartError> {
    builder().data_dir(folder).start().await
}

#[tokio::test]
async fn topics_records_producers_and_settings_survive_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let broker = start(folder.path()).await.unwrap();
    let cluster_id = broker.cluster_id().to_owned();
    let mut client = Client::connect(&broker).await;
    let id = client
        .create_topic_with("t", 2, &[("retention.ms", "86400000")])
        .await;
    client.produce("t", 1, &["a", "b"]).await;
    let records = batch_of(&["c"], |batch| batch.set_producer(4000, 0, 0));
    client.ask(12, produce("t", 1, records.clone(), -1)).await;
    broker.shutdown().await;

    let broker = start(folder.path()).await.unwrap();
    assert_eq!(broker.cluster_id(), cluster_id);
    let mut client = Client::connect(&broker).await;
    let mut by_id = fetch("", 1, 0, 0);
    by_id.topics[0].topic_id = id;
    let fetched = client.ask(13, by_id).await;
    assert_eq!(values(&fetched.responses[0].partitions[0]), ["a", "b", "c"]);
    // The producer sends its batch once more.
    let again = client.ask(12, produce("t", 1, records, -1)).await;
    let again = &again.responses[0].partition_responses[0];
    assert_eq!((again.error_code, again.base_offset), (ErrorCode::NONE, 2));
}

#[tokio::test]
async fn a_folder_belongs_to_one_broker_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let broker = start(folder.path()).await.unwrap();
    let error = start(folder.path()).await.unwrap_err();
    assert!(matches!(error, StartError::Locked(_)), "{error}");
    broker.shutdown().await;
    start(folder.path()).await.unwrap();
}

#[tokio::test]
async fn a_folder_that_cannot_be_used_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let error = start(&file).await.unwrap_err();
    assert!(error.to_string().contains("file"), "{error}");
    fs::write(folder.path().join("kohort.json"), "{").unwrap();
    let error = start(folder.path()).await.unwrap_err();
    assert!(error.to_string().contains("kohort.json"), "{error}");
}

#[tokio::test]
async fn a_damaged_partition_is_left_out_and_the_others_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let broker = start(folder.path()).await.unwrap();
    let mut client = Client::connect(&broker).await;
    client.create_topic("t", 2).await;
    client.produce("t", 0, &["a"]).await;
    client.produce("t", 0, &["b"]).await;
    client.produce("t", 1, &["c"]).await;
    broker.shutdown().await;
    // Not a clean start, so that the log is looked through.
    let partition = folder.path().join("t-0");
    for file in ["clean-shutdown", ".kafka_cleanshutdown"] {
        let _ = fs::remove_file(partition.join(file));
    }
    let log = partition.join("00000000000000000000.log");
    let mut bytes = fs::read(&log).unwrap();
    bytes[65] ^= 1;
    fs::write(&log, &bytes).unwrap();

    let broker = start(folder.path()).await.unwrap();
    let mut client = Client::connect(&broker).await;
    assert_eq!(
        client.produce("t", 0, &["x"]).await.error_code,
        ErrorCode::KAFKA_STORAGE_ERROR
    );
    assert_eq!(
        client.fetch("t", 0, 0).await.error_code,
        ErrorCode::KAFKA_STORAGE_ERROR
    );
    assert_eq!(values(&client.fetch("t", 1, 0).await), ["c"]);
    assert_eq!(
        client.produce("t", 1, &["d"]).await.error_code,
        ErrorCode::NONE
    );
    assert_eq!(fs::read(&log).unwrap(), bytes);
}

/// The names in a folder, and what is in the files below them.
fn everything(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.display().to_string();
        if path.is_dir() {
            found.extend(everything(&path));
            found.push((name, Vec::new()));
        } else {
            found.push((name, fs::read(&path).unwrap()));
        }
    }
    found.sort();
    found
}

#[tokio::test]
async fn folders_that_belong_to_no_topic_stay_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let broker = start(folder.path()).await.unwrap();
    let mut client = Client::connect(&broker).await;
    client.create_topic("t", 1).await;
    broker.shutdown().await;
    let ghosts = folder.path().join("ghost-0");
    fs::create_dir(&ghosts).unwrap();
    fs::write(ghosts.join("00000000000000000000.log"), "records").unwrap();
    fs::create_dir(folder.path().join("empty-0")).unwrap();
    fs::create_dir(folder.path().join("old-0.AAAAAAAAAAAAAAAAAAAAAQ-delete")).unwrap();
    let before = everything(&ghosts);
    let broker = start(folder.path()).await.unwrap();
    let names: Vec<_> = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    for name in ["t-0", "ghost-0", "empty-0"] {
        assert!(names.iter().any(|found| found == name), "{names:?}");
    }
    // A removal that was interrupted is finished.
    assert!(!names.iter().any(|name| name.ends_with("-delete")));
    // Nor does a new topic take such a folder.
    let mut client = Client::connect(&broker).await;
    let refused = client.ask(7, create_topic("ghost", 1, &[])).await;
    let refused = &refused.topics[0];
    assert_eq!(refused.error_code, ErrorCode::KAFKA_STORAGE_ERROR);
    let message = refused.error_message.as_deref().unwrap();
    assert!(message.contains("ghost-0 is in the way"), "{message}");
    assert_eq!(everything(&ghosts), before);
    assert!(!broker.topics().contains(&"ghost".to_owned()));
    // An empty one is nobody's.
    client.create_topic("empty", 1).await;
}

#[tokio::test]
async fn the_folder_of_a_kafka_that_may_be_running_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let partition = folder.path().join("orders-0");
    fs::create_dir(&partition).unwrap();
    fs::write(partition.join("00000000000000000000.log"), "records").unwrap();
    fs::write(folder.path().join("meta.properties"), "version=1").unwrap();
    let before = everything(folder.path());
    let error = start(folder.path()).await.unwrap_err();
    assert!(matches!(error, StartError::NotKohorts { .. }), "{error}");
    assert_eq!(everything(folder.path()), before);
}

#[tokio::test]
async fn a_folder_that_has_lost_its_catalog_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let broker = start(folder.path()).await.unwrap();
    let mut client = Client::connect(&broker).await;
    client.create_topic("t", 1).await;
    client.produce("t", 0, &["a"]).await;
    broker.shutdown().await;
    let catalog = folder.path().join("kohort.json");
    let bytes = fs::read(&catalog).unwrap();
    fs::remove_file(&catalog).unwrap();
    let before = everything(folder.path());
    let error = start(folder.path()).await.unwrap_err();
    assert!(
        matches!(error, StartError::CatalogMissing { .. }),
        "{error}"
    );
    assert_eq!(everything(folder.path()), before);
    fs::write(&catalog, bytes).unwrap();
    let broker = start(folder.path()).await.unwrap();
    let mut client = Client::connect(&broker).await;
    assert_eq!(values(&client.fetch("t", 0, 0).await), ["a"]);
}

#[tokio::test]
async fn only_the_owner_may_look_into_the_data_folder() {
    use std::os::unix::fs::PermissionsExt;
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("data");
    let broker = start(&folder).await.unwrap();
    let mut client = Client::connect(&broker).await;
    client.create_topic("t", 1).await;
    client.produce("t", 0, &["a"]).await;
    broker.shutdown().await;
    let mut paths: Vec<_> = everything(&folder)
        .into_iter()
        .map(|(path, _)| path)
        .collect();
    paths.push(folder.display().to_string());
    for path in paths {
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{path} has mode {mode:o}");
    }
}

#[tokio::test]
async fn what_is_no_partition_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let places = ["photos-3", "things-to-delete", "a.b-delete", "t--1"];
    for place in places {
        fs::create_dir(folder.path().join(place)).unwrap();
        fs::write(folder.path().join(place).join("app.log"), "precious").unwrap();
    }
    let broker = start(folder.path()).await.unwrap();
    let mut client = Client::connect(&broker).await;
    // In the way of a partition that there is to be.
    let refused = client.ask(7, create_topic("photos", 4, &[])).await;
    assert_eq!(refused.topics[0].error_code, ErrorCode::KAFKA_STORAGE_ERROR);
    assert!(!folder.path().join("photos-0").exists());
    client.create_topic("photos", 3).await;
    let delete = DeleteTopicsRequest {
        topic_names: vec!["photos".into()],
        ..DeleteTopicsRequest::default()
    };
    client.ask(5, delete).await;
    for place in places {
        let kept = fs::read_to_string(folder.path().join(place).join("app.log"));
        assert_eq!(kept.unwrap(), "precious", "{place}");
    }
}

/// The folder of a partition gets a longer name when it is to go.
#[tokio::test]
async fn a_topic_with_the_longest_name_is_gone_when_it_is_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let broker = start(folder.path()).await.unwrap();
    let mut client = Client::connect(&broker).await;
    let name = "x".repeat(249);
    client.create_topic(&name, 1).await;
    client.produce(&name, 0, &["of the first"]).await;
    let delete = DeleteTopicsRequest {
        topic_names: vec![name.as_str().into()],
        ..DeleteTopicsRequest::default()
    };
    client.ask(5, delete).await;
    let partition = folder.path().join(format!("{name}-0"));
    assert!(!partition.exists());
    client.create_topic(&name, 1).await;
    assert!(values(&client.fetch(&name, 0, 0).await).is_empty());
    broker.shutdown().await;
}

#[tokio::test]
async fn a_folder_with_the_records_of_another_topic_is_not_used() {
    let folder = tempfile::tempdir().unwrap();
    let broker = start(folder.path()).await.unwrap();
    let mut client = Client::connect(&broker).await;
    client.create_topic("t", 1).await;
    client.produce("t", 0, &["a"]).await;
    broker.shutdown().await;
    let metadata = folder.path().join("t-0").join("partition.metadata");
    fs::write(&metadata, "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ").unwrap();
    let before = everything(&folder.path().join("t-0"));
    let broker = start(folder.path()).await.unwrap();
    let mut client = Client::connect(&broker).await;
    let refused = client.produce("t", 0, &["b"]).await;
    assert_eq!(refused.error_code, ErrorCode::KAFKA_STORAGE_ERROR);
    assert_eq!(everything(&folder.path().join("t-0")), before);
}

/// It is not flushed: after a power failure it may be empty, or not be there.
#[tokio::test]
async fn a_partition_that_does_not_say_whose_it_is_any_more_says_so_again() {
    let folder = tempfile::tempdir().unwrap();
    let broker = start(folder.path()).await.unwrap();
    let mut client = Client::connect(&broker).await;
    client.create_topic("t", 2).await;
    for partition in [0, 1] {
        client.produce("t", partition, &["a"]).await;
    }
    broker.shutdown().await;
    let files = ["t-0", "t-1"].map(|name| folder.path().join(name).join("partition.metadata"));
    let before = files.each_ref().map(|file| fs::read(file).unwrap());
    fs::write(&files[0], "version: 0\ntop").unwrap();
    fs::remove_file(&files[1]).unwrap();
    let broker = start(folder.path()).await.unwrap();
    let mut client = Client::connect(&broker).await;
    for partition in [0, 1] {
        assert_eq!(values(&client.fetch("t", partition, 0).await), ["a"]);
    }
    assert_eq!(files.each_ref().map(|file| fs::read(file).unwrap()), before);
}

#[tokio::test]
async fn many_brokers_live_in_one_process() {
    let mut brokers = Vec::new();
    for _ in 0..20 {
        brokers.push(builder().start().await.unwrap());
    }
    for broker in &brokers {
        let mut client = Client::connect(broker).await;
        client.create_topic("t", 1).await;
        client.produce("t", 0, &["a"]).await;
    }
    for broker in brokers {
        broker.shutdown().await;
    }
}

/// A request ends with its connection, but not in the middle of a change: the file of the next
/// change would be overtaken by its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_known_of_topics_is_on_disk_although_clients_hang_up_in_the_middle() {
    let folder = tempfile::tempdir().unwrap();
    let broker = start(folder.path()).await.unwrap();
    let mut stays = Client::connect(&broker).await;
    for number in 0..30 {
        let mut leaves = Client::connect(&broker).await;
        let request = create_topic(&format!("leaves-{number}"), 1, &[]);
        leaves.send(7, &request).await;
        // Long enough to be in the middle of it, now and then.
        tokio::time::sleep(Duration::from_micros(100 * number)).await;
        drop(leaves);
        stays.create_topic(&format!("stays-{number}"), 1).await;
    }
    let before = broker.topics();
    broker.shutdown().await;
    let broker = start(folder.path()).await.unwrap();
    assert_eq!(broker.topics(), before);
    for number in 0..30 {
        assert!(before.contains(&format!("stays-{number}")));
    }
}
