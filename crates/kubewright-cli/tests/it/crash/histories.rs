//! Hand-written histories: the checker accepts the valid ones and rejects the others.

use std::collections::BTreeMap;

use super::history::{Content, Event, History, Kind, Listing, Operation, Outcome, Request, Session, Version};
use super::versions::check;

const NEVER: u64 = u64::MAX;
const CREATE_1: Request = Request::Create { value: 1 };
const CREATE_2: Request = Request::Create { value: 2 };
const UPDATE_2: Request = Request::Update { value: 2, expect: None };
const PATCH_3: Request = Request::Patch { value: 3, expect: None };
const DELETE: Request = Request::Delete { expect: None };

/// A request for object 0 in a time interval.
type Row = (u64, u64, Request, Outcome);

fn version(revision: u64, value: u64) -> Version {
    Version { revision, content: Content { value, patch: 0 } }
}

/// A response with an object.
fn at(revision: u64, value: u64) -> Outcome {
    Outcome::Version(version(revision, value))
}

fn patched(revision: u64, value: u64, patch: u64) -> Outcome {
    Outcome::Version(Version { revision, content: Content { value, patch } })
}

fn history(rows: &[Row]) -> History {
    let operation = |(start, end, request, outcome): &Row| Operation {
        key: 0,
        start: *start,
        end: *end,
        request: *request,
        outcome: *outcome,
    };
    History { keys: 1, operations: rows.iter().map(operation).collect(), ..History::default() }
}

#[track_caller]
fn accepted(rows: &[Row]) {
    check(&history(rows)).expect("the history is valid");
}

#[track_caller]
fn rejected(history: &History, reason: &str) {
    let error = check(history).expect_err("the history is invalid");
    let error = format!("{error:#}");
    assert!(error.contains(reason), "{error}");
}

#[test]
fn sequential_requests_are_accepted() {
    accepted(&[
        (1, 2, Request::Get, Outcome::NotFound),
        (3, 4, CREATE_1, at(10, 1)),
        (5, 6, CREATE_2, Outcome::AlreadyExists),
        (7, 8, Request::Get, at(10, 1)),
        (9, 10, Request::Update { value: 4, expect: Some(9) }, Outcome::Conflict),
        (11, 12, Request::Update { value: 5, expect: Some(10) }, at(12, 5)),
        (13, 14, PATCH_3, patched(13, 5, 3)),
        (15, 16, Request::Delete { expect: Some(12) }, Outcome::Conflict),
        (17, 18, Request::Delete { expect: Some(13) }, Outcome::Deleted),
        (19, 20, UPDATE_2, Outcome::NotFound),
    ]);
}

#[test]
fn overlapping_requests_are_accepted_in_any_order_of_effects() {
    accepted(&[
        (1, 9, CREATE_1, at(10, 1)),
        (2, 8, UPDATE_2, at(11, 2)),
        (3, 7, Request::Get, at(10, 1)),
        (4, 6, DELETE, Outcome::Deleted),
        (5, 10, Request::Get, Outcome::NotFound),
    ]);
}

#[test]
fn a_request_without_a_response_may_have_an_effect_or_none() {
    let lost = (3, NEVER, UPDATE_2, Outcome::Unknown);
    accepted(&[(1, 2, CREATE_1, at(10, 1)), lost, (5, 6, Request::Get, at(10, 1))]);
    accepted(&[
        (1, 2, CREATE_1, at(10, 1)),
        lost,
        (5, 6, Request::Get, at(10, 1)),
        (7, 8, Request::Get, at(11, 2)),
    ]);
    // Its version was never read, but it explains the conflict.
    let conflict = (5, 6, Request::Update { value: 4, expect: Some(10) }, Outcome::Conflict);
    accepted(&[(1, 2, CREATE_1, at(10, 1)), lost, conflict]);
    rejected(&history(&[(1, 2, CREATE_1, at(10, 1)), conflict]), "not linearizable");
    accepted(&[
        (1, 2, CREATE_1, at(10, 1)),
        (3, NEVER, DELETE, Outcome::Unknown),
        (5, 6, Request::Get, at(10, 1)),
        (7, 8, CREATE_2, at(12, 2)),
    ]);
}

#[test]
fn a_request_without_a_response_has_no_effect_after_its_end_or_before_its_start() {
    let created = (1, 2, CREATE_1, at(10, 1));
    let rows = [
        created,
        (3, 4, UPDATE_2, Outcome::Unknown),
        (5, 6, Request::Get, at(10, 1)),
        (7, 8, Request::Get, at(11, 2)),
    ];
    rejected(&history(&rows), "not linearizable");
    let rows = [created, (3, 4, Request::Get, at(11, 2)), (5, NEVER, UPDATE_2, Outcome::Unknown)];
    rejected(&history(&rows), "not linearizable");
}

#[test]
fn many_requests_without_a_response_are_checked() {
    let mut rows = vec![(1, 2, CREATE_1, at(10, 1))];
    for i in 0..9 {
        let value = 100 + i;
        rows.push((3 + i, NEVER, Request::Update { value, expect: None }, Outcome::Unknown));
    }
    rows.push((30, 31, Request::Get, at(10, 1)));
    rows.push((32, 33, Request::Get, at(20, 104)));
    accepted(&rows);
    rows.push((34, 35, Request::Get, at(10, 1)));
    rejected(&history(&rows), "not linearizable");
}

#[test]
fn a_lost_write_is_rejected() {
    let created = (1, 2, CREATE_1, at(10, 1));
    rejected(&history(&[created, (3, 4, Request::Get, Outcome::NotFound)]), "not linearizable");
    let rows = [created, (3, 4, DELETE, Outcome::Deleted), (5, 6, Request::Get, at(10, 1))];
    rejected(&history(&rows), "not linearizable");
    // The patch used the state before the update.
    let rows = [created, (3, 4, UPDATE_2, at(11, 2)), (5, 6, PATCH_3, patched(12, 1, 3))];
    rejected(&history(&rows), "not linearizable");
}

#[test]
fn a_write_that_was_read_and_then_lost_is_rejected() {
    let rows = [
        (1, 2, CREATE_1, at(10, 1)),
        (3, 8, UPDATE_2, Outcome::Unknown),
        (4, 5, Request::Get, at(11, 2)),
        (9, 10, Request::Get, at(10, 1)),
    ];
    rejected(&history(&rows), "not linearizable");
    // The response to the second create shows that the first one had an effect.
    let rows = [
        (1, 6, CREATE_1, Outcome::Unknown),
        (2, 3, CREATE_2, Outcome::AlreadyExists),
        (7, 8, Request::Get, Outcome::NotFound),
    ];
    rejected(&history(&rows), "not linearizable");
}

#[test]
fn a_stale_read_is_rejected() {
    let rows = [(1, 2, CREATE_1, at(10, 1)), (3, 4, UPDATE_2, at(11, 2)), (5, 6, Request::Get, at(10, 1))];
    rejected(&history(&rows), "not linearizable");
}

#[test]
fn a_write_that_was_applied_twice_is_rejected() {
    let rows = [(1, 2, CREATE_1, at(10, 1)), (3, 4, Request::Get, at(11, 1))];
    rejected(&history(&rows), "was written at 10 and at 11");
    rejected(&history(&[(1, 2, CREATE_1, at(10, 1)), (3, 4, CREATE_2, at(11, 2))]), "not linearizable");
}

#[test]
fn a_precondition_that_did_not_hold_is_rejected() {
    let rows = [
        (1, 2, CREATE_1, at(10, 1)),
        (3, 4, UPDATE_2, at(11, 2)),
        (5, 6, Request::Update { value: 4, expect: Some(10) }, at(12, 4)),
    ];
    rejected(&history(&rows), "not linearizable");
}

#[test]
fn a_decreasing_revision_is_rejected() {
    let rows = [(1, 2, CREATE_1, at(10, 1)), (3, 4, UPDATE_2, at(9, 2))];
    rejected(&history(&rows), "revision 9 was assigned after a response with 10");
}

#[test]
fn an_object_that_no_request_wrote_is_rejected() {
    rejected(&history(&[(1, 2, Request::Get, at(10, 7))]), "no request wrote");
}

/// Three versions of object 0.
fn written() -> History {
    history(&[
        (1, 2, CREATE_1, at(10, 1)),
        (3, 4, UPDATE_2, at(11, 2)),
        (5, 6, Request::Update { value: 3, expect: None }, at(13, 3)),
        (7, 8, DELETE, Outcome::Deleted),
    ])
}

fn watched(events: &[(Kind, u64, u64)]) -> History {
    let event = |(kind, revision, value): &(Kind, u64, u64)| Event {
        kind: *kind,
        key: 0,
        version: version(*revision, *value),
    };
    let session = Session { from: 5, items: BTreeMap::new(), events: events.iter().map(event).collect() };
    History { sessions: vec![session], ..written() }
}

const ALL: [(Kind, u64, u64); 4] =
    [(Kind::Added, 10, 1), (Kind::Modified, 11, 2), (Kind::Modified, 13, 3), (Kind::Deleted, 14, 3)];

#[test]
fn a_complete_watch_is_accepted() {
    for count in 0..=ALL.len() {
        check(&watched(&ALL[..count])).expect("a watch may end at any time");
    }
}

#[test]
fn a_watch_with_a_gap_is_rejected() {
    rejected(&watched(&[ALL[0], ALL[2], ALL[3]]), "missing event for");
    rejected(&watched(&[ALL[0], ALL[1], ALL[3]]), "Deleted, key: 0");
    rejected(&watched(&ALL[1..]), "Modified, key: 0");
    // The deletion is missing before the next create.
    let mut history = watched(&[ALL[0], ALL[1], ALL[2], (Kind::Added, 15, 4)]);
    let (request, outcome) = (Request::Create { value: 4 }, at(15, 4));
    history.operations.push(Operation { key: 0, start: 9, end: 10, request, outcome });
    rejected(&history, "Added, key: 0");
}

#[test]
fn a_watch_with_a_duplicate_or_in_the_wrong_order_is_rejected() {
    rejected(&watched(&[ALL[0], ALL[0]]), "follows revision 10");
    rejected(&watched(&[ALL[0], ALL[1], ALL[1]]), "follows revision 11");
    rejected(&watched(&[ALL[0], ALL[2], ALL[1]]), "follows revision 13");
}

#[test]
fn a_watch_event_that_contradicts_the_responses_is_rejected() {
    rejected(&watched(&[ALL[0], (Kind::Modified, 11, 3)]), "was written at");
    rejected(&watched(&[ALL[0], (Kind::Modified, 12, 9)]), "no request wrote");
    rejected(&watched(&[ALL[0], (Kind::Deleted, 12, 1)]), "missing event for");
    // The watch shows a write without a response, which a read then misses.
    let mut history = watched(&[ALL[0], ALL[1], ALL[2], ALL[3], (Kind::Added, 16, 5)]);
    let unknown = Operation {
        key: 0,
        start: 9,
        end: 12,
        request: Request::Create { value: 5 },
        outcome: Outcome::Unknown,
    };
    history.operations.push(unknown);
    check(&history).expect("the write had an effect");
    let missed =
        Operation { start: 13, end: 14, request: Request::Get, outcome: Outcome::NotFound, ..unknown };
    history.operations.push(missed);
    rejected(&history, "not linearizable");
}

#[test]
fn two_watches_with_different_events_are_rejected() {
    let mut history = watched(&ALL);
    let mut other = history.sessions[0].clone();
    other.from = 11;
    other.items.insert(0, version(11, 2));
    other.events = other.events.split_off(2);
    history.sessions.push(other);
    check(&history).expect("both watches are complete");
    history.sessions[1].events[1].version.revision = 15;
    rejected(&history, "was deleted at 14 and at 15");
}

#[test]
fn an_inconsistent_list_is_rejected() {
    let list = |revision, items: &[Version]| {
        let items = items.iter().map(|item| (0, *item)).collect();
        let lists = vec![Listing { start: 2, end: 9, revision, items }];
        History { lists, ..watched(&ALL) }
    };
    check(&list(12, &[version(11, 2)])).expect("the list is consistent");
    check(&list(14, &[])).expect("the list is consistent");
    rejected(&list(12, &[version(10, 1)]), "is listed at 10");
    rejected(&list(12, &[version(13, 3)]), "has the later revision 13");
    rejected(&list(13, &[]), "is missing");
    rejected(&list(14, &[version(13, 3)]), "is listed at 13");
}
