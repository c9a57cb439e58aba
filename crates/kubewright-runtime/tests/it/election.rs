//! Leader election against the embedded API server, on a paused clock.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::events::v1::Event;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kubewright_runtime::internal::{ElectionEnd, ElectionMetrics, Fenced, Leadership};
use kubewright_runtime::{Manager, eventually};
use prometheus_client::registry::Registry;
use tokio::time::{sleep, timeout};

use crate::election_world::{Line, Replica, World};
use crate::manager::replica;
use crate::operator::Running;

const LEASE_DURATION: Duration = Duration::from_secs(15);
const RENEW_DEADLINE: Duration = Duration::from_secs(10);
const RETRY_PERIOD: Duration = Duration::from_secs(2);
/// The longest time between two attempts of a standby: the retry period plus jitter.
const TRY: Duration = Duration::from_millis(4400);
/// The duration of a write and the pause after it.
const WRITE: Duration = Duration::from_millis(100);

#[tokio::test(start_paused = true)]
async fn the_first_replica_leads_and_the_second_knows_the_leader() {
    let world = World::new();
    let mut first = world.replica("first", 1);
    first.leads().await;
    let mut second = world.replica("second", 2);
    let standby = Leadership::Standby { leader: Some("first".to_owned()) };
    second.leadership.wait_for(|now| *now == standby).await.unwrap();

    assert!(first.fence.check().is_ok());
    assert_eq!(second.fence.check(), Err(Fenced::NotLeading));
    // It stays so.
    sleep(Duration::from_mins(10)).await;
    assert_eq!(*first.leadership.borrow(), Leadership::Leading { transitions: 0 });
    assert_eq!(*second.leadership.borrow(), standby);
}

#[tokio::test(start_paused = true)]
async fn a_lease_has_the_fields_that_client_go_writes() {
    let world = World::new();
    let mut first = world.replica("first", 1);
    first.leads().await;
    sleep(Duration::from_secs(3)).await;
    let lease = world.leases().get("lock").await.unwrap();
    insta::assert_snapshot!(serde_json::to_string_pretty(&lease.spec).unwrap(), @r#"
    {
      "acquireTime": "2026-01-01T00:00:00.000000Z",
      "holderIdentity": "first",
      "leaseDurationSeconds": 15,
      "leaseTransitions": 0,
      "renewTime": "2026-01-01T00:00:02.000000Z"
    }
    "#);
}

#[tokio::test(start_paused = true)]
async fn a_paused_leader_loses_the_lease_and_writes_nothing_afterwards() {
    let world = Arc::new(World::new());
    let mut first = world.replica("first", 1);
    first.leads().await;
    let mut second = world.replica("second", 2);
    // Each replica writes continuously while its fence is open.
    let writes = Arc::new(Mutex::new(Vec::new()));
    for (name, fence) in [("first", first.fence.clone()), ("second", second.fence.clone())] {
        let (world, writes) = (world.clone(), writes.clone());
        tokio::spawn(async move {
            loop {
                let write = fence.guard(async {
                    sleep(WRITE / 2).await;
                    writes.lock().unwrap().push((world.elapsed(), name));
                });
                let _refused = write.await;
                sleep(WRITE / 2).await;
            }
        });
    }

    sleep(Duration::from_mins(1)).await;
    let paused = world.elapsed();
    first.pause();
    second.leads().await;
    let overtaken = world.elapsed();
    // The last renewal was sent at most a retry period before the pause.
    assert!(overtaken + RETRY_PERIOD >= paused + LEASE_DURATION, "{overtaken:?}");
    assert!(overtaken <= paused + LEASE_DURATION + 2 * TRY, "{overtaken:?}");
    assert_eq!(first.fence.check(), Err(Fenced::Expired));
    assert_eq!(*second.leadership.borrow(), Leadership::Leading { transitions: 1 });
    // The first replica still believes that it leads, but its fence is closed.
    assert_eq!(*first.leadership.borrow(), Leadership::Leading { transitions: 0 });

    sleep(Duration::from_secs(5)).await;
    let writes = writes.lock().unwrap().clone();
    let last = writes.iter().filter(|(_, name)| *name == "first").map(|(time, _)| *time).max().unwrap();
    let took_over = writes.iter().filter(|(_, name)| *name == "second").map(|(time, _)| *time).min().unwrap();
    assert!(last + RETRY_PERIOD + WRITE > paused + RENEW_DEADLINE, "it wrote until its deadline: {last:?}");
    assert!(last <= paused + RENEW_DEADLINE, "it wrote after its deadline: {last:?}");
    assert!(took_over > last, "{took_over:?} > {last:?}");

    first.resume();
    assert_eq!(first.running.await.unwrap(), ElectionEnd::Lost);
    assert_eq!(*first.leadership.borrow(), Leadership::Lost);
    assert_eq!(first.fence.check(), Err(Fenced::NotLeading));
    assert!(second.fence.check().is_ok());
}

#[tokio::test(start_paused = true)]
async fn after_a_release_the_next_replica_leads_at_its_next_attempt() {
    let world = World::new();
    let mut first = world.replica("first", 1);
    first.leads().await;
    let mut second = world.replica("second", 2);
    sleep(Duration::from_secs(30)).await;

    first.stop();
    assert_eq!(first.running.await.unwrap(), ElectionEnd::Cancelled);
    assert_eq!(first.fence.check(), Err(Fenced::NotLeading));
    assert_eq!(*first.leadership.borrow(), Leadership::Lost);
    let lease = world.leases().get("lock").await.unwrap();
    insta::assert_snapshot!(serde_json::to_string_pretty(&lease.spec).unwrap(), @r#"
    {
      "acquireTime": "2026-01-01T00:00:30.000000Z",
      "holderIdentity": "",
      "leaseDurationSeconds": 1,
      "leaseTransitions": 0,
      "renewTime": "2026-01-01T00:00:30.000000Z"
    }
    "#);

    timeout(TRY, second.leads()).await.expect("the lease is free");
    assert_eq!(*second.leadership.borrow(), Leadership::Leading { transitions: 1 });
}

#[tokio::test(start_paused = true)]
async fn a_leader_without_a_connection_loses_at_the_renew_deadline() {
    for broken in [Line::Refusing, Line::Hanging] {
        let world = World::new();
        let mut first = world.replica("first", 1);
        first.leads().await;
        // Renewed at 0, 2, 4 and 6 seconds.
        sleep(Duration::from_secs(7)).await;
        first.line.send_replace(broken);

        assert_eq!(first.running.await.unwrap(), ElectionEnd::Lost);
        assert_eq!(world.elapsed().as_millis() / 10, 1600, "{broken:?}: {:#?}", world.trace());
        assert_eq!(first.fence.check(), Err(Fenced::NotLeading));
        assert_eq!(*first.leadership.borrow(), Leadership::Lost);
    }
}

#[tokio::test(start_paused = true)]
async fn a_leader_survives_an_outage_that_is_shorter_than_the_renew_deadline() {
    for broken in [Line::Refusing, Line::Hanging] {
        let world = World::new();
        let mut first = world.replica("first", 1);
        first.leads().await;
        first.line.send_replace(broken);
        sleep(Duration::from_secs(6)).await;
        first.line.send_replace(Line::Up);
        sleep(Duration::from_mins(1)).await;
        assert!(first.fence.check().is_ok(), "{broken:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_standby_survives_an_outage() {
    let world = World::new();
    let mut first = world.replica("first", 1);
    first.line.send_replace(Line::Hanging);
    sleep(Duration::from_mins(2)).await;
    assert_eq!(*first.leadership.borrow(), Leadership::Standby { leader: None });
    first.line.send_replace(Line::Up);
    timeout(RENEW_DEADLINE + TRY, first.leads()).await.expect("it is the only contender");
}

#[tokio::test(start_paused = true)]
async fn an_aborted_replica_is_fenced_immediately_and_does_not_release_the_lease() {
    let world = World::new();
    let mut first = world.replica("first", 1);
    first.leads().await;
    first.running.abort();
    assert!(first.running.await.unwrap_err().is_cancelled());
    assert_eq!(first.fence.check(), Err(Fenced::NotLeading));
    assert_eq!(*first.leadership.borrow(), Leadership::Lost);
    let spec = world.leases().get("lock").await.unwrap().spec.unwrap();
    assert_eq!(spec.holder_identity.as_deref(), Some("first"));
}

#[tokio::test(start_paused = true)]
async fn a_leader_loses_at_the_next_renewal_if_the_holder_is_overwritten() {
    let world = World::new();
    let mut first = world.replica("first", 1);
    first.leads().await;
    let force = serde_json::json!({"spec": {"holderIdentity": "kubectl"}});
    world.leases().patch("lock", &PatchParams::default(), &Patch::Merge(force)).await.unwrap();
    assert_eq!(timeout(Duration::from_secs(3), first.running).await.unwrap().unwrap(), ElectionEnd::Lost);
}

#[tokio::test(start_paused = true)]
async fn a_leader_written_in_go_is_respected_and_reported() {
    let world = World::new();
    let lease: Lease = serde_json::from_value(serde_json::json!({
        "metadata": {"name": "lock"},
        "spec": {
            "holderIdentity": "guestbook-x2x7l_0f0e9a46-8f9f-4d07-8d6a-6e3f2f8f5b0b",
            "leaseDurationSeconds": 30,
            "acquireTime": "2020-01-01T00:00:00.000000Z",
            "renewTime": "2020-01-01T00:00:00.000000Z",
            "leaseTransitions": 7,
        },
    }))
    .unwrap();
    world.leases().create(&PostParams::default(), &lease).await.unwrap();

    let leaders = Arc::new(Mutex::new(Vec::new()));
    let (election, line) = world.election("first", 1);
    let heard = leaders.clone();
    let election = election.on_new_leader(move |leader| heard.lock().unwrap().push(leader.to_owned()));
    let mut first = Replica::start(election, line);
    first.leads().await;

    let waited = world.elapsed();
    assert!((Duration::from_secs(30)..Duration::from_secs(30) + TRY).contains(&waited), "{waited:?}");
    assert_eq!(*first.leadership.borrow(), Leadership::Leading { transitions: 8 });
    let leaders = leaders.lock().unwrap().join(", ");
    assert_eq!(leaders, "guestbook-x2x7l_0f0e9a46-8f9f-4d07-8d6a-6e3f2f8f5b0b, first");
}

#[tokio::test(start_paused = true)]
async fn the_metrics_have_the_names_of_client_go() {
    let shown = |registry: &Registry| {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, registry).unwrap();
        text.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>().join("\n")
    };
    let world = World::new();
    let mut registry = Registry::default();
    let metrics = ElectionMetrics::register(&mut registry);
    let (election, line) = world.election("first", 1);
    let election = election.with_metrics(&metrics);
    insta::assert_snapshot!(shown(&registry), @r#"
    leader_election_master_status{name="lock"} 0
    leader_election_slowpath_total{name="lock"} 0
    "#);

    let mut first = Replica::start(election, line);
    first.leads().await;
    let label = serde_json::json!({"metadata": {"labels": {"seen": "yes"}}});
    world.leases().patch("lock", &PatchParams::default(), &Patch::Merge(label)).await.unwrap();
    sleep(Duration::from_secs(5)).await;
    insta::assert_snapshot!(shown(&registry), @r#"
    leader_election_master_status{name="lock"} 1
    leader_election_slowpath_total{name="lock"} 1
    "#);

    first.stop();
    first.running.await.unwrap();
    insta::assert_snapshot!(shown(&registry), @r#"
    leader_election_master_status{name="lock"} 0
    leader_election_slowpath_total{name="lock"} 1
    "#);
}

/// The requests of three contenders, of which one is cut off and one stops, and the order of leaders.
fn trace(seed: u64) -> Vec<String> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let world = World::new();
        let mut replicas: Vec<_> =
            (0..3).map(|index| world.replica(&format!("replica-{index}"), seed + index)).collect();
        sleep(Duration::from_secs(30)).await;
        let leading =
            |replicas: &[Replica]| replicas.iter().position(|replica| replica.fence.check().is_ok());
        let first = leading(&replicas).expect("one leads");
        replicas[first].line.send_replace(Line::Hanging);
        sleep(Duration::from_mins(1)).await;
        let second = leading(&replicas).expect("another replica leads");
        replicas[second].stop();
        sleep(Duration::from_mins(1)).await;
        let third = leading(&replicas).expect("the last replica leads");
        let mut trace = world.trace();
        trace.push(format!("{first} {second} {third}"));
        trace
    })
}

#[test]
fn the_same_seeds_give_the_same_trace() {
    let once = trace(1);
    assert_eq!(once, trace(1));
    assert_ne!(once, trace(100), "the seeds determine the retry times");
}

#[tokio::test(start_paused = true)]
async fn a_new_leader_records_an_event_about_the_lease() -> anyhow::Result<()> {
    let world = crate::world::World::new();
    let first = Manager::new(world.kube.clone(), replica("first"))?;
    let second = Manager::new(world.kube.clone(), replica("second"))?;
    let running = Running::start(&first);
    first.elected().await;
    let standby = Running::start(&second);
    // Waits for as many events.
    let events = async |count: usize| {
        let about = ListParams::default().fields("reason=LeaderElection");
        let list = async || {
            let events = world.api::<Event>().list(&about).await.map_err(|error| error.to_string())?.items;
            if events.len() == count { Ok(events) } else { Err(format!("{} events", events.len())) }
        };
        eventually(Duration::from_secs(5), list).await
    };
    let event = events(1).await?.remove(0);
    let lease = world.api::<Lease>().get("test.example.org").await?;
    let regarding = event.regarding.unwrap_or_default();
    assert_eq!((regarding.kind.as_deref(), regarding.name), (Some("Lease"), lease.metadata.name));
    assert_eq!(regarding.uid, lease.metadata.uid);
    assert_eq!(event.reporting_controller.as_deref(), Some("test"));

    running.end().await?;
    second.elected().await;
    let mut notes: Vec<_> = events(2).await?.into_iter().filter_map(|event| event.note).collect();
    notes.sort();
    assert_eq!(notes, ["first became leader", "second became leader"]);
    standby.end().await
}
