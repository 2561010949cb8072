use super::*;

fn at(offset: i64) -> Position {
    Position {
        offset,
        leader_epoch: None,
    }
}

fn started() -> Progress {
    let mut progress = Progress::default();
    progress.skip_to(at(0));
    progress
}

fn may_commit(progress: &Progress) -> Option<i64> {
    progress.to_commit().map(|position| position.offset)
}

#[test]
fn only_what_lies_before_the_first_unfinished_record_may_be_committed() {
    let mut progress = started();
    progress.deliver(1, at(5));
    progress.deliver(2, at(7));
    progress.deliver(1, at(9));
    assert!(progress.finish(2));
    assert_eq!(may_commit(&progress), Some(0));
    assert!(progress.finish(1));
    assert_eq!(may_commit(&progress), Some(9));
    assert!(!progress.finish(1));
}

#[test]
fn what_a_handle_leaves_behind_is_never_committed_past() {
    let mut progress = started();
    progress.deliver(1, at(5));
    progress.deliver(2, at(7));
    progress.abandon(1);
    progress.finish(2);
    assert_eq!(may_commit(&progress), Some(0));
    assert!(!progress.is_held());
}

#[test]
fn what_holds_no_records_is_finished_with_what_comes_before_it() {
    let mut progress = started();
    progress.deliver(1, at(5));
    progress.skip_to(at(12));
    assert_eq!(may_commit(&progress), Some(0));
    progress.finish(1);
    assert_eq!(may_commit(&progress), Some(12));
    progress.skip_to(at(13));
    assert_eq!(may_commit(&progress), Some(13));
}

#[test]
fn a_seek_forgets_what_is_held() {
    let mut progress = started();
    progress.deliver(1, at(5));
    progress.seek(Some(at(2)));
    assert!(!progress.finish(1));
    assert_eq!(may_commit(&progress), Some(2));
}

#[test]
fn a_commit_of_the_applications_own_is_not_undone_by_the_next_one() {
    let mut progress = started();
    progress.deliver(1, at(5));
    progress.deliver(1, at(9));
    progress.note_committed(7);
    progress.finish_up_to(at(7));
    assert_eq!(may_commit(&progress), None);
    progress.finish(1);
    assert_eq!(may_commit(&progress), Some(9));
    assert!(progress.has_uncommitted());
    progress.note_committed(9);
    assert!(!progress.has_uncommitted());
}

#[test]
fn nothing_behind_the_end_of_a_truncated_log_is_committed() {
    let mut progress = started();
    progress.deliver(1, at(5));
    progress.truncate(at(3));
    assert_eq!(progress.position(), Some(at(3)));
    progress.finish(1);
    assert_eq!(may_commit(&progress), Some(3));
}
