//! Events on the embedded API server, also when the server does not respond.

use std::future::pending;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod};
use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams, PostParams};
use kube::{Client, Resource, ResourceExt};
use kubewright_apiserver::ApiServer;
use kubewright_runtime::events::{Broadcaster, Recorder};
use kubewright_runtime::logs::{self, Format, Options};
use kubewright_runtime::{Object, TokioClock, consistently, eventually};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::Instant;

const SOON: Duration = Duration::from_secs(5);

/// The state of the connection between broadcaster and server.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Way {
    Open,
    /// No request gets a response.
    Hangs,
    /// Connections fail.
    Broken,
    /// Requests are served, but their responses are lost.
    Unheard,
    /// Every request gets this status code.
    Answers(u16),
}

/// A connection to the server that records its requests.
#[derive(Clone)]
struct Wire {
    server: ApiServer,
    way: Arc<Mutex<Way>>,
    requests: Arc<Mutex<Vec<String>>>,
}

impl tower_service::Service<http::Request<kube::client::Body>> for Wire {
    type Response = http::Response<kubewright_apiserver::Body>;
    type Error = std::io::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: http::Request<kube::client::Body>) -> Self::Future {
        self.requests.lock().unwrap().push(request.method().to_string());
        let way = *self.way.lock().unwrap();
        let server = self.server.clone();
        Box::pin(async move {
            match way {
                Way::Open => Ok(server.handle(request).await),
                Way::Hangs => pending().await,
                Way::Broken => Err(std::io::Error::other("connection refused")),
                Way::Unheard => {
                    server.handle(request).await;
                    Err(std::io::Error::other("connection reset by peer"))
                }
                Way::Answers(code) => {
                    // Any response, with another status code.
                    *request.uri_mut() = "/nowhere".parse().unwrap();
                    let mut answer = server.handle(request).await;
                    *answer.status_mut() = code.try_into().unwrap();
                    Ok(answer)
                }
            }
        })
    }
}

/// A server, and a broadcaster that writes to it.
struct World {
    client: Client,
    wire: Wire,
    recorder: Recorder,
    stop: Option<oneshot::Sender<()>>,
    broadcaster: JoinHandle<()>,
}

impl World {
    fn new() -> Self {
        Self::with_way(Way::Open)
    }

    fn with_way(way: Way) -> Self {
        let start = "2026-01-01T00:00:00Z".parse::<Timestamp>().unwrap();
        let clock = kubewright_apiserver::clock::TokioClock::starting_at(start.as_microsecond());
        let server = ApiServer::new(kubewright_apiserver::Options {
            clock: Arc::new(clock),
            seed: Some(1),
            ..kubewright_apiserver::Options::default()
        });
        let client = Client::new(server.clone(), "default");
        let wire = Wire { server, way: Arc::new(Mutex::new(way)), requests: Arc::default() };
        let clock = Arc::new(TokioClock::starting_at(start));
        let broadcaster = Broadcaster::new("host-1", clock, fastrand::Rng::with_seed(1));
        let recorder = broadcaster.recorder("page-controller");
        let (stop, stopped) = oneshot::channel::<()>();
        let run = broadcaster.run(Client::new(wire.clone(), "default"), async {
            let _ = stopped.await;
        });
        Self { client, wire, recorder, stop: Some(stop), broadcaster: tokio::spawn(run) }
    }

    fn set(&self, way: Way) {
        *self.wire.way.lock().unwrap() = way;
    }

    fn requests(&self) -> Vec<String> {
        self.wire.requests.lock().unwrap().clone()
    }

    async fn create<K>(&self, json: serde_json::Value) -> K
    where
        K: Object + Resource<Scope = k8s_openapi::NamespaceResourceScope>,
    {
        let api: Api<K> = Api::default_namespaced(self.client.clone());
        api.create(&PostParams::default(), &serde_json::from_value(json).unwrap()).await.unwrap()
    }

    async fn page(&self) -> ConfigMap {
        self.create(serde_json::json!({"metadata": {"name": "page"}})).await
    }

    async fn events(&self) -> Vec<Event> {
        Api::all(self.client.clone()).list(&ListParams::default()).await.unwrap().items
    }

    /// Waits for `count` events.
    async fn eventually(&self, count: usize) -> Vec<Event> {
        let there = async || {
            let events = self.events().await;
            if events.len() == count { Ok(events) } else { Err(format!("{} events", events.len())) }
        };
        eventually(SOON, there).await.unwrap()
    }

    /// Stops the broadcaster. Returns how long that took.
    async fn stop(&mut self) -> Duration {
        let start = Instant::now();
        drop(self.stop.take());
        (&mut self.broadcaster).await.unwrap();
        start.elapsed()
    }
}

/// The log of this thread, in which the whole test runs.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn start() -> (Self, tracing::subscriber::DefaultGuard) {
        let log = Self::default();
        let writer = log.clone();
        let options = Options { format: Format::Text, level: Some("warn".to_owned()), ..Options::default() };
        let guard = logs::capture(&options, move || writer.clone()).unwrap();
        (log, guard)
    }

    /// The lines, without their time.
    fn lines(&self) -> Vec<String> {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        text.lines().map(|line| line[13..].to_owned()).collect()
    }
}

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn count(event: &Event) -> i32 {
    event.series.as_ref().map_or(1, |series| series.count)
}

#[tokio::test(start_paused = true)]
async fn an_event_has_all_fields() {
    let world = World::new();
    let page = world.page().await;
    let pod: Pod = world
        .create(serde_json::json!({
            "metadata": {"name": "web"},
            "spec": {"containers": [{"name": "main", "image": "nginx"}]},
        }))
        .await;
    let note = format_args!("{} of {} pages", 2, 3);
    world.recorder.about(&page).related(&pod).warning("FailedCreate").action("Create").note(note);

    let events = world.eventually(1).await;
    let mut event = serde_json::to_value(&events[0]).unwrap();
    for noise in ["creationTimestamp", "managedFields", "resourceVersion", "uid"] {
        event["metadata"].as_object_mut().unwrap().remove(noise);
    }
    let expected = serde_json::json!({
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "deprecatedSource": {},
        "metadata": {"namespace": "default", "name": "page.18867251edfa0000"},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "type": "Warning",
        "reason": "FailedCreate",
        "action": "Create",
        "note": "2 of 3 pages",
        "reportingController": "page-controller",
        "reportingInstance": "page-controller-host-1",
        "regarding": {
            "apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": "page",
            "uid": page.uid(), "resourceVersion": page.resource_version(),
        },
        "related": {
            "apiVersion": "v1", "kind": "Pod", "namespace": "default", "name": "web",
            "uid": pod.uid(), "resourceVersion": pod.resource_version(),
        },
    });
    assert_eq!(event, expected);

    // What `kubectl describe` reads.
    let core: Api<k8s_openapi::api::core::v1::Event> = Api::default_namespaced(world.client.clone());
    let about = format!("involvedObject.uid={}", page.uid().unwrap());
    let described = core.list(&ListParams::default().fields(&about)).await.unwrap().items;
    assert_eq!(described.len(), 1);
    assert_eq!(described[0].message.as_deref(), Some("2 of 3 pages"));
}

#[tokio::test(start_paused = true)]
async fn cluster_scoped_and_dynamic_objects_can_have_events() {
    let world = World::new();
    let namespace = Api::<Namespace>::all(world.client.clone()).get("kube-system").await.unwrap();
    world.recorder.normal(&namespace, "Seen").action("See").note("it is there");
    let deployment = ApiResource::erase::<Deployment>(&());
    let mut object = DynamicObject::new("web", &deployment).within("kube-system");
    world.recorder.normal(&object, "Seen").action("See").note("it is there");
    object.types = None;
    world.recorder.normal(&object, "Seen").action("See").note("but what is it?");

    let mut places: Vec<_> = world
        .eventually(2)
        .await
        .into_iter()
        .map(|event| {
            let regarding = event.regarding.unwrap();
            (event.metadata.namespace.unwrap(), regarding.api_version.unwrap(), regarding.kind.unwrap())
        })
        .collect();
    places.sort();
    let expected = [("default", "v1", "Namespace"), ("kube-system", "apps/v1", "Deployment")];
    assert_eq!(places, expected.map(|(a, b, c)| (a.to_owned(), b.to_owned(), c.to_owned())));
}

#[tokio::test(start_paused = true)]
async fn a_hundred_equal_events_are_one_event_with_a_count() {
    let world = World::new();
    let mut page = world.page().await;
    for version in 0..100 {
        page.metadata.resource_version = Some(version.to_string());
        world.recorder.normal(&page, "Synced").action("Sync").note("it is there");
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let events = world.events().await;
    assert_eq!((events.len(), count(&events[0])), (1, 2), "the first repetition is written immediately");
    assert_eq!(world.requests(), ["POST", "PATCH"]);

    let all = async || match count(&world.events().await[0]) {
        100 => Ok(()),
        count => Err(count),
    };
    eventually(Duration::from_mins(7), all).await.unwrap();
    assert_eq!(world.requests(), ["POST", "PATCH", "PATCH"]);
    let events = world.events().await;
    let last = events[0].series.as_ref().unwrap().last_observed_time.0;
    assert_eq!(last.as_second() - events[0].event_time.as_ref().unwrap().0.as_second(), 99);
}

#[tokio::test(start_paused = true)]
async fn a_changed_note_is_a_new_event() {
    let world = World::new();
    let page = world.page().await;
    for note in ["from 0 to 3", "from 3 to 1", "from 0 to 3"] {
        world.recorder.normal(&page, "Scaled").action("Scale").note(note);
    }
    let events = world.eventually(2).await;
    let seen: Vec<_> = events.iter().map(|event| (event.note.as_deref().unwrap(), count(event))).collect();
    assert_eq!(seen, [("from 0 to 3", 2), ("from 3 to 1", 1)]);
}

#[tokio::test(start_paused = true)]
async fn a_recorder_that_ignores_notes_keeps_the_first_note() {
    let world = World::new();
    let page = world.page().await;
    let recorder = world.recorder.ignoring_notes();
    for time in 0..3 {
        recorder.normal(&page, "Synced").note(format_args!("in {time} ms"));
    }
    let events = world.eventually(1).await;
    assert_eq!((events[0].note.as_deref(), count(&events[0])), (Some("in 0 ms"), 3));
    assert_eq!(events[0].action.as_deref(), Some("Synced"), "the action defaults to the reason");
}

#[tokio::test(start_paused = true)]
async fn a_recorder_can_report_as_another_controller() {
    let world = World::new();
    let page = world.page().await;
    world.recorder.normal(&page, "Synced").note("it is there");
    for _ in 0..2 {
        world.recorder.named("example.com/backup").normal(&page, "Synced").note("it is there");
    }
    let mut reporters: Vec<_> = world.eventually(2).await.iter().map(reporter).collect();
    reporters.sort();
    assert_eq!(
        reporters,
        [
            ("example.com/backup".to_owned(), "example.com/backup-host-1".to_owned(), 2),
            ("page-controller".to_owned(), "page-controller-host-1".to_owned(), 1),
        ]
    );
}

fn reporter(event: &Event) -> (String, String, i32) {
    let Event { reporting_controller, reporting_instance, .. } = event.clone();
    (reporting_controller.unwrap_or_default(), reporting_instance.unwrap_or_default(), count(event))
}

#[tokio::test(start_paused = true)]
async fn events_with_different_annotations_are_different_events() {
    let world = World::new();
    let page = world.page().await;
    for batch in ["1", "2", "1"] {
        let event = world.recorder.normal(&page, "Scaled").annotation("example.com/batch", batch);
        event.annotation("example.com/cause", "spec").note("Scaled to 3 replicas");
    }
    let events = world.eventually(2).await;
    let seen: Vec<_> = events
        .iter()
        .map(|event| (event.annotations()["example.com/batch"].as_str(), count(event)))
        .collect();
    assert_eq!(seen, [("1", 2), ("2", 1)]);
    assert!(events.iter().all(|event| event.annotations()["example.com/cause"] == "spec"));
}

#[tokio::test(start_paused = true)]
async fn a_reason_with_several_words_is_logged() -> anyhow::Result<()> {
    let log = crate::operator::Log::keep()?;
    let world = World::new();
    let page = world.page().await;
    world.recorder.normal(&page, "the page is there").note("Created");
    world.recorder.normal(&page, "Created").note("the page is there");
    let lines = log.saying("Event reason should be one CamelCase word");
    assert_eq!(lines.len(), 1, "{lines:?}");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn equal_events_at_the_same_time_are_one_write() {
    let world = World::new();
    let page = world.page().await;
    for _ in 0..100 {
        world.recorder.normal(&page, "Synced").action("Sync").note("");
    }
    assert_eq!(count(&world.eventually(1).await[0]), 100);
    assert_eq!(world.requests(), ["POST"]);
}

#[tokio::test(start_paused = true)]
async fn events_per_object_are_rate_limited() {
    let world = World::new();
    let page = world.page().await;
    for reason in 0..60 {
        world.recorder.warning(&page, &format!("Reason{reason}")).action("Sync").note("");
    }
    world.eventually(25).await;
    let limited = async || match world.events().await.len() {
        25 => Ok(()),
        count => Err(format!("{count} events")),
    };
    consistently(Duration::from_mins(1), limited).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_event_survives_an_outage() {
    let world = World::with_way(Way::Broken);
    let page = world.page().await;
    world.recorder.normal(&page, "Synced").action("Sync").note("");
    tokio::time::sleep(Duration::from_secs(30)).await;
    world.set(Way::Answers(503));
    tokio::time::sleep(Duration::from_secs(30)).await;
    let tries = world.requests().len();
    assert!((5..=7).contains(&tries), "{tries} attempts in a minute");
    world.recorder.normal(&page, "Synced").action("Sync").note("");
    world.set(Way::Open);
    let there = async || match world.events().await.as_slice() {
        [event] => Ok(count(event)),
        events => Err(format!("{} events", events.len())),
    };
    assert_eq!(eventually(Duration::from_secs(13), there).await.unwrap(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_write_whose_response_is_lost_is_not_repeated() {
    let world = World::with_way(Way::Unheard);
    let page = world.page().await;
    world.recorder.normal(&page, "Synced").action("Sync").note("");
    world.eventually(1).await;
    world.recorder.normal(&page, "Synced").action("Sync").note("");
    world.set(Way::Open);
    let counted = async || match world.events().await.as_slice() {
        [event] if count(event) == 2 => Ok(()),
        events => Err(format!("{events:?}")),
    };
    eventually(Duration::from_secs(13), counted).await.unwrap();
    assert_eq!(world.requests(), ["POST", "POST", "PATCH"]);
}

#[tokio::test(start_paused = true)]
async fn a_rejected_event_is_logged_once_and_not_sent_again() {
    let (log, _guard) = Log::start();
    let world = World::with_way(Way::Answers(403));
    let page = world.page().await;
    for _ in 0..10 {
        world.recorder.normal(&page, "Synced").action("Sync").note("");
        tokio::time::sleep(Duration::from_mins(1)).await;
    }
    assert_eq!(world.requests(), ["POST"]);
    let [line] = log.lines().try_into().unwrap();
    assert!(line.starts_with("WARN  API server rejected event event=default/page."), "{line}");
}

#[tokio::test(start_paused = true)]
async fn an_event_in_a_terminating_namespace_is_dropped_without_a_log_line() {
    let (log, _guard) = Log::start();
    let world = World::new();
    let namespaces: Api<Namespace> = Api::all(world.client.clone());
    let pages: Api<ConfigMap> = Api::namespaced(world.client.clone(), "ending");
    let namespace = serde_json::json!({"metadata": {"name": "ending"}});
    let page = serde_json::json!({"metadata": {"name": "page", "finalizers": ["example.com/hold"]}});
    namespaces.create(&PostParams::default(), &serde_json::from_value(namespace).unwrap()).await.unwrap();
    let page = pages.create(&PostParams::default(), &serde_json::from_value(page).unwrap()).await.unwrap();
    namespaces.delete("ending", &DeleteParams::default()).await.unwrap();

    world.recorder.normal(&page, "Deleting").action("Delete").note("");
    let sent = async || if world.requests().is_empty() { Err("no request") } else { Ok(()) };
    eventually(SOON, sent).await.unwrap();
    tokio::time::sleep(Duration::from_mins(2)).await;
    assert_eq!(world.requests(), ["POST"]);
    assert_eq!(world.events().await, []);
    assert_eq!(log.lines(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn when_the_queue_is_full_the_oldest_events_are_dropped_and_logged() {
    let (log, _guard) = Log::start();
    let world = World::new();
    // The broadcaster has not run yet, because nothing was awaited.
    for _ in 0..1500 {
        world.recorder.normal(&Pod::default(), "Synced").action("Sync").note("");
    }
    assert_eq!(count(&world.eventually(1).await[0]), 1000);
    assert_eq!(log.lines(), ["WARN  Events dropped dropped=500 suppressed=0"]);
}

#[tokio::test(start_paused = true)]
async fn a_recorder_does_not_block_on_a_server_that_hangs() {
    let mut world = World::with_way(Way::Hangs);
    let page = world.page().await;
    let start = Instant::now();
    for reason in 0..5000 {
        world.recorder.normal(&page, &format!("Reason{reason}")).action("Sync").note("");
    }
    assert_eq!(start.elapsed(), Duration::ZERO);
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(world.requests().len(), 4, "4 concurrent writes");
    assert_eq!(world.stop().await, Duration::from_secs(1), "shutdown does not wait for it either");
    // Events after shutdown are discarded without blocking.
    world.recorder.normal(&page, "Late").action("Sync").note("");
}

#[tokio::test(start_paused = true)]
async fn shutdown_flushes_pending_events() {
    let mut world = World::new();
    let page = world.page().await;
    world.recorder.normal(&page, "Synced").action("Sync").note("");
    world.eventually(1).await;
    for _ in 0..41 {
        world.recorder.normal(&page, "Synced").action("Sync").note("");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    world.recorder.normal(&page, "Stopped").action("Stop").note("");
    assert_eq!(world.stop().await, Duration::ZERO);
    let counts: Vec<_> = world.events().await.iter().map(count).collect();
    assert_eq!(counts, [42, 1]);
}

#[tokio::test(start_paused = true)]
async fn an_expired_event_is_created_again() {
    let world = World::new();
    let page = world.page().await;
    world.recorder.normal(&page, "Synced").action("Sync").note("");
    let event = world.eventually(1).await.remove(0);
    let api: Api<Event> = Api::default_namespaced(world.client.clone());
    api.delete(&event.name_any(), &DeleteParams::default()).await.unwrap();
    world.recorder.normal(&page, "Synced").action("Sync").note("");
    assert_eq!(count(&world.eventually(1).await[0]), 2);
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_gives_the_same_writes() {
    async fn names() -> Vec<String> {
        let world = World::new();
        let page = world.page().await;
        for reason in ["A", "B", "C", "A"] {
            world.recorder.normal(&page, reason).action("Sync").note("");
        }
        let odd = Api::<Namespace>::all(world.client.clone()).get("default").await.unwrap();
        let mut odd = odd.clone();
        odd.metadata.name = Some("system:odd".to_owned());
        world.recorder.normal(&odd, "A").action("Sync").note("");
        let mut names: Vec<_> = world.eventually(4).await.iter().map(ResourceExt::name_any).collect();
        names.sort();
        names
    }
    assert_eq!(names().await, names().await);
}
