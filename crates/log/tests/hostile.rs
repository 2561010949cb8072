//! Batches and files that are not what they should be.

mod common;

use std::io;

use common::{
    NOW, append, batch_with, batches_from, put, records_from, sim_disk::SimDisk, small, values_from,
};
use kohort_log::{Log, LogConfig, LogError};
use kohort_wire::{ErrorCode, records::Compression};
use proptest::{collection::vec, prelude::*, sample::Index};

fn config() -> ProptestConfig {
    ProptestConfig {
        cases: 400,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// A log of several segments that has been closed: all files it can have are there.
fn closed() -> (SimDisk, Vec<common::Seen>) {
    let disk = SimDisk::new();
    let log = Log::with_storage(disk.storage(), small()).unwrap();
    for i in 0..30 {
        let (key, value) = (i.to_string(), format!("value {i}"));
        let entries = [(Some(key.as_str()), Some(value.as_str()), NOW + i)];
        append(
            &log,
            &batch_with(Compression::None, (4, 0, i as i32), &entries),
        )
        .unwrap();
    }
    log.delete_records(3).unwrap();
    let records = records_from(&log, 3);
    log.close().unwrap();
    (disk, records)
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_damaged_batch_is_refused_and_harms_nothing(
        compression in 0usize..5,
        damage in vec((any::<Index>(), any::<u8>()), 1..5),
        cut in any::<Index>(),
        fix_checksum: bool,
    ) {
        let log = Log::in_memory(LogConfig { max_decompressed_bytes: 10_000, ..small() });
        put(&log, "before");
        let entries = [(Some("key"), Some("value"), NOW), (None, None, NOW)];
        let mut bytes = batch_with(Compression::ALL[compression], (1, 0, 0), &entries).to_vec();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.truncate(cut.index(bytes.len() * 3));
        if fix_checksum && bytes.len() > 61 {
            kohort_wire::records::BatchMut::new(&mut bytes).set_crc();
        }
        let appended = append(&log, &bytes).is_ok();
        put(&log, "after");
        let batches = batches_from(&log, 0, common::ALL).unwrap();
        prop_assert_eq!(batches.len(), 2 + usize::from(appended));
        for batch in batches {
            // What was let in can be read by everyone.
            let records = batch.records(10_000).unwrap();
            for record in &records {
                prop_assert!(record.is_ok());
            }
        }
    }

    #[test]
    fn a_damaged_file_is_noticed_or_does_not_matter(
        file in any::<Index>(),
        damage in vec((any::<Index>(), 1..=255u8), 1..3),
        cut in proptest::option::weighted(0.2, any::<Index>()),
        kill: bool,
    ) {
        let (disk, records) = closed();
        let names = disk.names();
        let name = &names[file.index(names.len())];
        if kill && name != "clean-shutdown" {
            disk.delete("clean-shutdown");
        }
        disk.tamper(name, |bytes| {
            if bytes.is_empty() {
                return;
            }
            for (at, byte) in damage {
                let at = at.index(bytes.len());
                bytes[at] ^= byte;
            }
            if let Some(cut) = cut {
                bytes.truncate(cut.index(bytes.len()));
            }
        });
        match Log::with_storage(disk.storage(), small()) {
            Err(error) => {
                prop_assert!(matches!(error, LogError::Corrupt { .. }), "{}: {}", name, error);
                prop_assert!(error.to_string().contains("sim/"));
            }
            Ok(log) => {
                prop_assert_eq!((log.start_offset(), log.end_offset()), (3, 30), "{}", name);
                // Damage in a closed segment is found by who reads the batch.
                if !name.ends_with(".log") {
                    prop_assert_eq!(records_from(&log, 3), records, "{}", name);
                } else {
                    for from in 3..30 {
                        let _ = log.read(from, common::ALL);
                    }
                }
                let _ = log.offset_for_timestamp(NOW + 10);
                let _ = log.offset_of_max_timestamp();
                prop_assert_eq!(put(&log, "next"), 30);
            }
        }
    }
}

#[test]
fn a_folder_that_became_read_only_is_an_error_with_its_name_and_can_be_read() {
    let disk = SimDisk::new();
    let log = Log::with_storage(disk.storage(), small()).unwrap();
    put(&log, "one");
    disk.fail_after(0, io::ErrorKind::ReadOnlyFilesystem);
    let error = append(
        &log,
        &batch_with(Compression::None, (-1, -1, -1), &[(None, None, NOW)]),
    );
    let error = error.unwrap_err();
    assert!(
        error.to_string().contains("sim/00000000000000000000.log"),
        "{error}"
    );
    assert_eq!(error.error_code(), ErrorCode::KAFKA_STORAGE_ERROR);
    assert_eq!(values_from(&log, 0), ["one"]);
    disk.heal();
    assert_eq!(put(&log, "two"), 1);
}
