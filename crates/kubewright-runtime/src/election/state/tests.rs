//! The protocol as a table: time and event on the left, the resulting action on the right.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::*;
use crate::LeaderElectionOptions;

const MIDNIGHT: i64 = 1_767_225_600;

fn lease(json: serde_json::Value) -> Event {
    Event::Read(Box::new(serde_json::from_value(json).expect("the test's own lease is well-formed")))
}

/// A record of `holder`, renewed at the given number of seconds after midnight.
fn held_by(holder: &str, renewed: u32, version: u32) -> Event {
    lease(serde_json::json!({
        "metadata": {"name": "lock", "namespace": "default", "resourceVersion": version.to_string()},
        "spec": {
            "holderIdentity": holder,
            "leaseDurationSeconds": 15,
            "acquireTime": "2025-12-31T23:00:00.000000Z",
            "renewTime": format!("2026-01-01T00:00:{renewed:02}.000000Z"),
            "leaseTransitions": 4,
        },
    }))
}

/// A contender `me`, with its actions.
struct Script {
    contender: Contender,
    asked: Option<Request>,
    version: u32,
    lines: String,
}

impl Script {
    fn new() -> Self {
        Self::with(|_| ())
    }

    fn with(change: impl FnOnce(&mut LeaderElectionOptions)) -> Self {
        let mut options = LeaderElectionOptions {
            namespace: Some("default".to_owned()),
            identity: Some("me".to_owned()),
            ..LeaderElectionOptions::new("lock")
        };
        change(&mut options);
        let mut rng = fastrand::Rng::with_seed(7);
        let settings = options.settle(&mut rng).unwrap();
        Self { contender: Contender::new(settings, rng), asked: None, version: 100, lines: String::new() }
    }

    /// Passes `event`, which happened `seconds` after midnight, to the contender.
    fn at(&mut self, seconds: f64, event: Event) -> &mut Self {
        let what = match &event {
            Event::Read(lease) => format!("read {}", describe(lease)),
            Event::Written(_) => "written".to_owned(),
            other => format!("{other:?}").to_lowercase(),
        };
        let at = Duration::from_secs_f64(seconds);
        let wall = Timestamp::from_second(MIDNIGHT).unwrap() + at;
        let step = self.contender.step(Moment { at, wall }, event);
        let then = match &step {
            Step::Send { request, until } => {
                let text = match request {
                    Request::Get => "get".to_owned(),
                    Request::Create(lease) => format!("create {}", describe(lease)),
                    Request::Update(lease) => format!("update {}", describe(lease)),
                };
                format!("{text}, until {}", until.as_secs_f64())
            }
            Step::Wait { until } => format!("wait until {:.3}", until.as_secs_f64()),
            Step::End(end) => format!("end: {end:?}"),
        };
        let held = self.contender.held().map(|held| format!(" [leads until {}]", held.at.as_secs_f64()));
        writeln!(self.lines, "{seconds}: {what} -> {then}{}", held.unwrap_or_default()).unwrap();
        self.asked = match step {
            Step::Send { request, .. } => Some(request),
            _ => None,
        };
        self
    }

    /// The server stores the pending write.
    fn stored(&mut self, seconds: f64) -> &mut Self {
        let Some(Request::Create(mut lease) | Request::Update(mut lease)) = self.asked.take() else {
            panic!("nothing to store:\n{}", self.lines)
        };
        self.version += 1;
        lease.metadata.resource_version = Some(self.version.to_string());
        self.at(seconds, Event::Written(lease))
    }

    /// The leader since midnight, with a Lease that it created.
    fn leading() -> Self {
        let mut script = Self::new();
        script.at(0.0, Event::Wake).at(0.0, Event::NotFound).stored(0.5);
        script.lines.clear();
        script
    }
}

fn describe(lease: &Lease) -> String {
    let spec = lease.spec.clone().unwrap_or_default();
    let time = |time: Option<MicroTime>| {
        time.map_or("never".to_owned(), |time| time.0.strftime("%T%.f").to_string())
    };
    format!(
        "{:?} v{} for {} s, acquired {}, renewed {}, transitions {}",
        spec.holder_identity.unwrap_or_default(),
        lease.metadata.resource_version.as_deref().unwrap_or("-"),
        spec.lease_duration_seconds.unwrap_or_default(),
        time(spec.acquire_time),
        time(spec.renew_time),
        spec.lease_transitions.unwrap_or_default(),
    )
}

#[test]
fn a_missing_lease_is_created() {
    let mut script = Script::new();
    script.at(0.0, Event::Wake).at(0.25, Event::NotFound).stored(0.5).at(2.5, Event::Wake);
    insta::assert_snapshot!(script.lines, @r#"
    0: wake -> get, until 5
    0.25: notfound -> create "me" v- for 15 s, acquired 00:00:00.25, renewed 00:00:00.25, transitions 0, until 5.25
    0.5: written -> wait until 2.500 [leads until 10.25]
    2.5: wake -> update "me" v101 for 15 s, acquired 00:00:00.25, renewed 00:00:02.5, transitions 0, until 7.5 [leads until 10.25]
    "#);
}

#[test]
fn a_create_that_conflicts_is_retried_later() {
    let mut script = Script::new();
    script.at(0.0, Event::Wake).at(0.0, Event::NotFound).at(0.0, Event::Conflict).at(3.0, Event::Wake);
    script.at(3.0, held_by("other", 1, 1));
    insta::assert_snapshot!(script.lines, @r#"
    0: wake -> get, until 5
    0: notfound -> create "me" v- for 15 s, acquired 00:00:00, renewed 00:00:00, transitions 0, until 5
    0: conflict -> wait until 3.856
    3: wake -> get, until 8
    3: read "other" v1 for 15 s, acquired 23:00:00, renewed 00:00:01, transitions 4 -> wait until 5.534
    "#);
}

#[test]
fn a_lease_that_is_unchanged_for_its_whole_duration_is_acquired() {
    let mut script = Script::new();
    // Its timestamps are old by our clock; they are not compared.
    script.at(100.0, Event::Wake).at(100.0, held_by("other", 0, 1));
    script.at(114.9, Event::Wake).at(114.999, held_by("other", 0, 1));
    script.at(115.0, Event::Wake).at(115.0, held_by("other", 0, 1)).stored(115.5);
    insta::assert_snapshot!(script.lines, @r#"
    100: wake -> get, until 105
    100: read "other" v1 for 15 s, acquired 23:00:00, renewed 00:00:00, transitions 4 -> wait until 103.856
    114.9: wake -> get, until 119.9
    114.999: read "other" v1 for 15 s, acquired 23:00:00, renewed 00:00:00, transitions 4 -> wait until 117.533
    115: wake -> get, until 120
    115: read "other" v1 for 15 s, acquired 23:00:00, renewed 00:00:00, transitions 4 -> update "me" v1 for 15 s, acquired 00:01:55, renewed 00:01:55, transitions 5, until 120
    115.5: written -> wait until 117.500 [leads until 125]
    "#);
}

#[test]
fn each_renewal_by_the_holder_restarts_the_lease_duration() {
    let mut script = Script::new();
    script.at(0.0, Event::Wake).at(0.0, held_by("other", 0, 1));
    script.at(14.0, Event::Wake).at(14.0, held_by("other", 13, 2));
    script.at(28.0, Event::Wake).at(28.0, held_by("other", 13, 2));
    script.at(29.0, Event::Wake).at(29.0, held_by("other", 13, 2));
    insta::assert_snapshot!(script.lines, @r#"
    0: wake -> get, until 5
    0: read "other" v1 for 15 s, acquired 23:00:00, renewed 00:00:00, transitions 4 -> wait until 3.856
    14: wake -> get, until 19
    14: read "other" v2 for 15 s, acquired 23:00:00, renewed 00:00:13, transitions 4 -> wait until 16.534
    28: wake -> get, until 33
    28: read "other" v2 for 15 s, acquired 23:00:00, renewed 00:00:13, transitions 4 -> wait until 31.724
    29: wake -> get, until 34
    29: read "other" v2 for 15 s, acquired 23:00:00, renewed 00:00:13, transitions 4 -> update "me" v2 for 15 s, acquired 00:00:29, renewed 00:00:29, transitions 5, until 34
    "#);
}

#[test]
fn a_label_change_does_not_count_as_a_renewal() {
    let mut script = Script::new();
    script.at(0.0, Event::Wake).at(0.0, held_by("other", 0, 1));
    script.at(15.0, Event::Wake).at(15.0, held_by("other", 0, 9));
    insta::assert_snapshot!(script.lines, @r#"
    0: wake -> get, until 5
    0: read "other" v1 for 15 s, acquired 23:00:00, renewed 00:00:00, transitions 4 -> wait until 3.856
    15: wake -> get, until 20
    15: read "other" v9 for 15 s, acquired 23:00:00, renewed 00:00:00, transitions 4 -> update "me" v9 for 15 s, acquired 00:00:15, renewed 00:00:15, transitions 5, until 20
    "#);
}

#[test]
fn a_released_lease_is_acquired_immediately() {
    let mut script = Script::new();
    script.at(0.0, Event::Wake).at(0.0, held_by("", 0, 1)).stored(0.0);
    insta::assert_snapshot!(script.lines, @r#"
    0: wake -> get, until 5
    0: read "" v1 for 15 s, acquired 23:00:00, renewed 00:00:00, transitions 4 -> update "me" v1 for 15 s, acquired 00:00:00, renewed 00:00:00, transitions 5, until 5
    0: written -> wait until 2.000 [leads until 10]
    "#);
}

#[test]
fn a_lost_race_for_the_lease_is_retried_after_the_usual_delay() {
    let mut script = Script::new();
    script.at(0.0, Event::Wake).at(0.0, held_by("", 0, 1)).at(0.0, Event::Conflict);
    script.at(3.0, Event::Wake).at(3.0, held_by("other", 1, 2));
    insta::assert_snapshot!(script.lines, @r#"
    0: wake -> get, until 5
    0: read "" v1 for 15 s, acquired 23:00:00, renewed 00:00:00, transitions 4 -> update "me" v1 for 15 s, acquired 00:00:00, renewed 00:00:00, transitions 5, until 5
    0: conflict -> wait until 3.856
    3: wake -> get, until 8
    3: read "other" v2 for 15 s, acquired 23:00:00, renewed 00:00:01, transitions 4 -> wait until 5.534
    "#);
}

#[test]
fn a_lease_that_already_names_this_replica_is_renewed() {
    let mut script = Script::new();
    script.at(0.0, Event::Wake).at(0.0, held_by("me", 0, 1)).stored(0.0);
    insta::assert_snapshot!(script.lines, @r#"
    0: wake -> get, until 5
    0: read "me" v1 for 15 s, acquired 23:00:00, renewed 00:00:00, transitions 4 -> update "me" v1 for 15 s, acquired 23:00:00, renewed 00:00:00.000001, transitions 4, until 5
    0: written -> wait until 2.000 [leads until 10]
    "#);
    assert_eq!(script.contender.take_slow_paths(), 1);
}

#[test]
fn a_deleted_lease_is_not_free_before_its_holder_would_have_expired() {
    let mut script = Script::new();
    script.at(0.0, Event::Wake).at(0.0, held_by("other", 0, 1));
    script.at(14.0, Event::Wake).at(14.0, Event::NotFound);
    script.at(15.0, Event::Wake).at(15.0, Event::NotFound);
    insta::assert_snapshot!(script.lines, @r#"
    0: wake -> get, until 5
    0: read "other" v1 for 15 s, acquired 23:00:00, renewed 00:00:00, transitions 4 -> wait until 3.856
    14: wake -> get, until 19
    14: notfound -> wait until 16.534
    15: wake -> get, until 20
    15: notfound -> create "me" v- for 15 s, acquired 00:00:15, renewed 00:00:15, transitions 0, until 20
    "#);
}

#[test]
fn a_leader_renews_without_reading() {
    let mut script = Script::leading();
    script.at(2.5, Event::Wake).stored(2.75).at(4.75, Event::Wake).stored(5.0);
    insta::assert_snapshot!(script.lines, @r#"
    2.5: wake -> update "me" v101 for 15 s, acquired 00:00:00, renewed 00:00:02.5, transitions 0, until 7.5 [leads until 10]
    2.75: written -> wait until 4.750 [leads until 12.5]
    4.75: wake -> update "me" v102 for 15 s, acquired 00:00:00, renewed 00:00:04.75, transitions 0, until 9.75 [leads until 12.5]
    5: written -> wait until 7.000 [leads until 14.75]
    "#);
    assert_eq!(script.contender.take_slow_paths(), 0);
}

#[test]
fn a_conflict_makes_a_leader_read_and_renew() {
    let mut script = Script::leading();
    script.at(2.5, Event::Wake).at(2.5, Event::Conflict).at(2.5, held_by("me", 0, 9)).stored(2.5);
    insta::assert_snapshot!(script.lines, @r#"
    2.5: wake -> update "me" v101 for 15 s, acquired 00:00:00, renewed 00:00:02.5, transitions 0, until 7.5 [leads until 10]
    2.5: conflict -> get, until 7.5 [leads until 10]
    2.5: read "me" v9 for 15 s, acquired 23:00:00, renewed 00:00:00, transitions 4 -> update "me" v9 for 15 s, acquired 23:00:00, renewed 00:00:02.5, transitions 4, until 7.5 [leads until 10]
    2.5: written -> wait until 4.500 [leads until 12.5]
    "#);
    assert_eq!(script.contender.take_slow_paths(), 1);
}

#[test]
fn a_leader_recreates_its_deleted_lease() {
    let mut script = Script::leading();
    script.at(2.5, Event::Wake).at(2.5, Event::NotFound).at(2.5, Event::NotFound).stored(2.5);
    insta::assert_snapshot!(script.lines, @r#"
    2.5: wake -> update "me" v101 for 15 s, acquired 00:00:00, renewed 00:00:02.5, transitions 0, until 7.5 [leads until 10]
    2.5: notfound -> get, until 7.5 [leads until 10]
    2.5: notfound -> create "me" v- for 15 s, acquired 00:00:02.5, renewed 00:00:02.5, transitions 0, until 7.5 [leads until 10]
    2.5: written -> wait until 4.500 [leads until 12.5]
    "#);
}

#[test]
fn a_leader_that_reads_another_holder_has_lost() {
    for other in ["other", ""] {
        let mut script = Script::leading();
        script.at(2.5, Event::Wake).at(2.5, Event::Conflict).at(2.5, held_by(other, 1, 9));
        assert!(script.lines.ends_with("-> end: Lost\n"), "{}", script.lines);
    }
}

#[test]
fn a_leader_that_cannot_renew_loses_at_the_renew_deadline() {
    let mut script = Script::leading();
    script.at(2.5, Event::Wake).at(7.5, Event::Failed).at(8.0, Event::Failed);
    script.at(10.0, Event::Wake);
    insta::assert_snapshot!(script.lines, @r#"
    2.5: wake -> update "me" v101 for 15 s, acquired 00:00:00, renewed 00:00:02.5, transitions 0, until 7.5 [leads until 10]
    7.5: failed -> get, until 10 [leads until 10]
    8: failed -> wait until 10.000 [leads until 10]
    10: wake -> end: Lost
    "#);
}

#[test]
fn a_renewal_response_after_the_deadline_does_not_keep_leadership() {
    let mut script = Script::leading();
    script.at(2.5, Event::Wake).stored(10.0);
    insta::assert_snapshot!(script.lines, @r#"
    2.5: wake -> update "me" v101 for 15 s, acquired 00:00:00, renewed 00:00:02.5, transitions 0, until 7.5 [leads until 10]
    10: written -> end: Lost
    "#);
}

#[test]
fn an_acquisition_response_after_the_deadline_does_not_give_leadership() {
    let mut script = Script::new();
    script.at(0.0, Event::Wake).at(0.0, Event::NotFound).stored(10.0).at(13.0, Event::Wake);
    insta::assert_snapshot!(script.lines, @r#"
    0: wake -> get, until 5
    0: notfound -> create "me" v- for 15 s, acquired 00:00:00, renewed 00:00:00, transitions 0, until 5
    10: written -> wait until 13.856
    13: wake -> get, until 18
    "#);
}

#[test]
fn a_cancelled_leader_releases_the_lease() {
    let mut script = Script::leading();
    script.at(2.0, Event::Cancelled).at(2.0, held_by("me", 0, 101)).stored(2.25);
    insta::assert_snapshot!(script.lines, @r#"
    2: cancelled -> get, until 7
    2: read "me" v101 for 15 s, acquired 23:00:00, renewed 00:00:00, transitions 4 -> update "" v101 for 1 s, acquired 00:00:02, renewed 00:00:02, transitions 4, until 7
    2.25: written -> end: Cancelled
    "#);
}

#[test]
fn a_release_is_retried_after_a_conflict_with_a_late_renewal() {
    let mut script = Script::leading();
    script
        .at(2.5, Event::Wake)
        .at(2.75, Event::Cancelled)
        .at(3.0, held_by("me", 0, 101))
        .at(3.0, Event::Conflict);
    script.at(3.0, held_by("me", 2, 102)).stored(3.0);
    insta::assert_snapshot!(script.lines, @r#"
    2.5: wake -> update "me" v101 for 15 s, acquired 00:00:00, renewed 00:00:02.5, transitions 0, until 7.5 [leads until 10]
    2.75: cancelled -> get, until 7.75
    3: read "me" v101 for 15 s, acquired 23:00:00, renewed 00:00:00, transitions 4 -> update "" v101 for 1 s, acquired 00:00:03, renewed 00:00:03, transitions 4, until 8
    3: conflict -> get, until 8
    3: read "me" v102 for 15 s, acquired 23:00:00, renewed 00:00:02, transitions 4 -> update "" v102 for 1 s, acquired 00:00:03, renewed 00:00:03, transitions 4, until 8
    3: written -> end: Cancelled
    "#);
}

#[test]
fn a_failed_or_unneeded_release_ends_the_election() {
    for event in [Event::Failed, Event::NotFound, held_by("other", 1, 9)] {
        let mut script = Script::leading();
        script.at(2.0, Event::Cancelled).at(3.0, event);
        assert!(script.lines.ends_with("-> end: Cancelled\n"), "{}", script.lines);
    }
}

#[test]
fn a_release_takes_no_longer_than_the_renew_deadline() {
    let mut script = Script::leading();
    script.at(2.0, Event::Cancelled).at(6.0, held_by("me", 0, 101)).at(10.5, Event::Conflict);
    script.at(12.0, held_by("me", 2, 102));
    insta::assert_snapshot!(script.lines, @r#"
    2: cancelled -> get, until 7
    6: read "me" v101 for 15 s, acquired 23:00:00, renewed 00:00:00, transitions 4 -> update "" v101 for 1 s, acquired 00:00:06, renewed 00:00:06, transitions 4, until 11
    10.5: conflict -> get, until 12
    12: read "me" v102 for 15 s, acquired 23:00:00, renewed 00:00:02, transitions 4 -> end: Cancelled
    "#);
}

#[test]
fn a_contender_cancelled_while_acquiring_releases_the_lease() {
    let mut script = Script::new();
    script
        .at(0.0, Event::Wake)
        .at(0.0, held_by("", 0, 1))
        .at(0.5, Event::Cancelled)
        .at(1.0, held_by("me", 0, 2));
    insta::assert_snapshot!(script.lines, @r#"
    0: wake -> get, until 5
    0: read "" v1 for 15 s, acquired 23:00:00, renewed 00:00:00, transitions 4 -> update "me" v1 for 15 s, acquired 00:00:00, renewed 00:00:00, transitions 5, until 5
    0.5: cancelled -> get, until 5.5
    1: read "me" v2 for 15 s, acquired 23:00:00, renewed 00:00:00, transitions 4 -> update "" v2 for 1 s, acquired 00:00:01, renewed 00:00:01, transitions 4, until 6
    "#);
}

#[test]
fn a_standby_or_a_leader_that_must_not_release_ends_immediately() {
    let mut standby = Script::new();
    standby.at(0.0, Event::Wake).at(0.0, held_by("other", 0, 1)).at(1.0, Event::Cancelled);
    let mut keeps = Script::with(|options| options.release_on_cancel = false);
    keeps.at(0.0, Event::Wake).at(0.0, Event::NotFound).stored(0.0).at(1.0, Event::Cancelled);
    for script in [standby, keeps] {
        assert!(script.lines.ends_with("1: cancelled -> end: Cancelled\n"), "{}", script.lines);
    }
}

#[test]
fn standbys_wait_between_1_and_2_2_retry_periods() {
    let mut script = Script::new();
    let (mut shortest, mut longest) = (f64::MAX, 0_f64);
    for _ in 0..1000 {
        script.contender.step(Moment { at: Duration::ZERO, wall: Timestamp::UNIX_EPOCH }, Event::Wake);
        let now = Moment { at: Duration::ZERO, wall: Timestamp::UNIX_EPOCH };
        let Step::Wait { until } = script.contender.step(now, Event::Failed) else {
            panic!("a failed read waits")
        };
        shortest = shortest.min(until.as_secs_f64());
        longest = longest.max(until.as_secs_f64());
    }
    assert!((2.0..2.1).contains(&shortest), "{shortest}");
    assert!((4.3..=4.4).contains(&longest), "{longest}");
}

#[test]
fn a_record_written_by_client_go_is_understood() {
    // As written by a controller-runtime manager in Go.
    let written = serde_json::json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": "lock",
            "namespace": "default",
            "uid": "6ac8f5a8-2b9a-43a9-8c5c-55d6e1b9b0a1",
            "resourceVersion": "812",
            "creationTimestamp": "2025-12-31T23:00:00Z",
            "labels": {"team": "storage"},
        },
        "spec": {
            "acquireTime": "2025-12-31T23:00:00.000000Z",
            "holderIdentity": "guestbook-6d4cf56db6-x2x7l_0f0e9a46-8f9f-4d07-8d6a-6e3f2f8f5b0b",
            "leaseDurationSeconds": 137,
            "leaseTransitions": 3,
            "renewTime": "2025-12-31T23:59:59.123456Z",
        },
    });
    let mut script = Script::with(|options| {
        options.labels = BTreeMap::from([("app".to_owned(), "guestbook".to_owned())]);
    });
    script.at(0.0, Event::Wake).at(0.0, lease(written.clone()));
    assert_eq!(
        script.contender.leader(),
        Some("guestbook-6d4cf56db6-x2x7l_0f0e9a46-8f9f-4d07-8d6a-6e3f2f8f5b0b")
    );
    assert_eq!(script.contender.transitions(), 3);
    // The duration is the one in the record, not ours.
    script.at(136.0, Event::Wake).at(136.0, lease(written.clone()));
    script.at(137.0, Event::Wake).at(137.0, lease(written));
    insta::assert_snapshot!(script.lines, @r#"
    0: wake -> get, until 5
    0: read "guestbook-6d4cf56db6-x2x7l_0f0e9a46-8f9f-4d07-8d6a-6e3f2f8f5b0b" v812 for 137 s, acquired 23:00:00, renewed 23:59:59.123456, transitions 3 -> wait until 3.856
    136: wake -> get, until 141
    136: read "guestbook-6d4cf56db6-x2x7l_0f0e9a46-8f9f-4d07-8d6a-6e3f2f8f5b0b" v812 for 137 s, acquired 23:00:00, renewed 23:59:59.123456, transitions 3 -> wait until 138.534
    137: wake -> get, until 142
    137: read "guestbook-6d4cf56db6-x2x7l_0f0e9a46-8f9f-4d07-8d6a-6e3f2f8f5b0b" v812 for 137 s, acquired 23:00:00, renewed 23:59:59.123456, transitions 3 -> update "me" v812 for 15 s, acquired 00:02:17, renewed 00:02:17, transitions 4, until 142
    "#);

    // Our update has every field that client-go reads and keeps all other fields.
    let Some(Request::Update(ours)) = script.asked.take() else { panic!("the lease is taken over") };
    insta::assert_snapshot!(serde_json::to_string_pretty(&ours).unwrap(), @r#"
    {
      "apiVersion": "coordination.k8s.io/v1",
      "kind": "Lease",
      "metadata": {
        "creationTimestamp": "2025-12-31T23:00:00Z",
        "labels": {
          "app": "guestbook",
          "team": "storage"
        },
        "name": "lock",
        "namespace": "default",
        "resourceVersion": "812",
        "uid": "6ac8f5a8-2b9a-43a9-8c5c-55d6e1b9b0a1"
      },
      "spec": {
        "acquireTime": "2026-01-01T00:02:17.000000Z",
        "holderIdentity": "me",
        "leaseDurationSeconds": 15,
        "leaseTransitions": 4,
        "renewTime": "2026-01-01T00:02:17.000000Z"
      }
    }
    "#);
}

#[test]
fn a_renewal_differs_from_the_last_one_even_if_the_clock_stands_still() {
    let mut script = Script::leading();
    let stuck = Timestamp::from_second(MIDNIGHT).unwrap();
    let mut times = Vec::new();
    for at in [3, 6, 9] {
        let now = Moment { at: Duration::from_secs(at), wall: stuck };
        let Step::Send { request: Request::Update(mut lease), .. } = script.contender.step(now, Event::Wake)
        else {
            panic!("a leader renews")
        };
        times.push(lease.spec.clone().unwrap().renew_time.unwrap());
        lease.metadata.resource_version = Some(at.to_string());
        script.contender.step(now, Event::Written(lease));
    }
    assert!(times.is_sorted_by(|a, b| a < b), "{times:?}");
}
