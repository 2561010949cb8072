//! A change that is refused has not happened, neither for readers nor for the next start.

mod common;

use std::io::ErrorKind;

use common::{put, records_from, sim_disk::SimDisk, small};
use kohort_log::Log;

/// A disk on which one operation fails: `after` others succeed first, and all that come later.
fn deletes_records_or_not(after: usize) -> bool {
    let disk = SimDisk::new();
    let log = Log::with_storage(disk.storage(), small()).unwrap();
    for number in 0..10 {
        put(&log, &number.to_string());
    }
    log.flush().unwrap();
    log.delete_records(2).unwrap();
    disk.fail_once(after, ErrorKind::Other);
    let deleted = log.delete_records(7);
    let is_beyond = disk.heal_unless_failed();
    let start = match deleted {
        Ok(start) => {
            assert_eq!(start, 7);
            7
        }
        Err(_) => 2,
    };
    assert_eq!(log.start_offset(), start, "{after}");
    let again = Log::with_storage(disk.kill().storage(), small()).unwrap();
    assert_eq!(again.start_offset(), start, "{after}");
    assert_eq!(records_from(&again, start).len() as i64, 10 - start);
    is_beyond
}

#[test]
fn records_are_deleted_or_not_whatever_fails() {
    let mut after = 0;
    while !deletes_records_or_not(after) {
        after += 1;
    }
    assert!(after > 5);
}
