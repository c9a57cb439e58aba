//! Responses wait for the log, including those that report an error.

use std::io;
use std::pin::pin;
use std::task::Waker;

use bytes::Bytes;
use http_body_util::Full;
use kubewright_sync::ordered_watch;

use super::*;
use crate::server::Options;
use crate::server::stages::Parts;
use crate::storage::{Durability, Limits, Memory, Outcome, Recorded, Revision, Store};

/// A log that is durable up to the given revision.
struct Slow(ordered_watch::Receiver<Revision>);

impl Durability for Slow {
    fn record(&self, _: &[Recorded]) {}

    fn forget(&self, _: &str) {}

    fn failure(&self) -> Option<io::Error> {
        None
    }

    fn close(&self) -> io::Result<()> {
        Ok(())
    }

    fn durable(&self) -> Revision {
        *self.0.borrow()
    }

    fn synced(&self, revision: Revision) -> Outcome<'_> {
        let mut durable = self.0.clone();
        Box::pin(async move {
            durable.wait_for(|durable| *durable >= revision).await.map(drop).map_err(io::Error::other)
        })
    }

    fn recovered(&self) -> Outcome<'_> {
        Box::pin(async { Ok(()) })
    }
}

/// A log on a disk that is full from a revision on. `None`: there is space.
struct Disk(ordered_watch::Receiver<Option<Revision>>);

impl Durability for Disk {
    fn record(&self, _: &[Recorded]) {}

    fn forget(&self, _: &str) {}

    fn failure(&self) -> Option<io::Error> {
        self.0.borrow().map(|_| io::ErrorKind::StorageFull.into())
    }

    fn close(&self) -> io::Result<()> {
        Ok(())
    }

    fn durable(&self) -> Revision {
        self.0.borrow().unwrap_or(Revision::MAX)
    }

    fn synced(&self, revision: Revision) -> Outcome<'_> {
        let stored = revision <= self.durable();
        Box::pin(async move { if stored { Ok(()) } else { Err(io::ErrorKind::StorageFull.into()) } })
    }

    fn recovered(&self) -> Outcome<'_> {
        let mut full = self.0.clone();
        Box::pin(async move { full.wait_for(Option::is_none).await.map(drop).map_err(io::Error::other) })
    }
}

async fn send(server: &ApiServer, method: &str, path: &str, body: &'static str) -> StatusCode {
    let request =
        http::Request::builder().method(method).uri(path).header("content-type", "application/json");
    server.handle(request.body(Full::new(Bytes::from_static(body.as_bytes()))).unwrap()).await.status()
}

#[tokio::test]
async fn a_response_waits_until_what_it_shows_is_durable() {
    const MAPS: &str = "/api/v1/namespaces/default/configmaps";
    const MAP: &str = "/api/v1/namespaces/default/configmaps/a";
    const BODY: &str = r#"{"metadata": {"name": "a"}}"#;
    let durable = ordered_watch::Sender::new(Revision::MAX);
    let store = Store::with(Memory::new(Limits::default()), Some(Arc::new(Slow(durable.subscribe()))));
    let server = ApiServer::on(Parts::new(store, Options::default(), None));
    server.bootstrap();
    assert_eq!(send(&server, "POST", MAPS, BODY).await, StatusCode::CREATED);
    durable.send_replace(server.revision());

    let mut context = Context::from_waker(Waker::noop());
    let mut deletion = pin!(send(&server, "DELETE", MAP, ""));
    assert!(deletion.as_mut().poll(&mut context).is_pending(), "the deletion is not durable");
    // A crash could restore the object.
    let requests = [("GET", MAP, ""), ("DELETE", MAP, ""), ("PUT", MAP, BODY)];
    let mut waiting = Vec::new();
    for (method, path, body) in requests {
        let mut response = Box::pin(send(&server, method, path, body));
        assert!(response.as_mut().poll(&mut context).is_pending(), "{method}");
        waiting.push((method, response));
    }
    durable.send_replace(server.revision());
    assert_eq!(deletion.await, StatusCode::OK);
    for (method, response) in waiting {
        assert_eq!(response.await, StatusCode::NOT_FOUND, "{method}");
    }

    let mut creation = pin!(send(&server, "POST", MAPS, BODY));
    assert!(creation.as_mut().poll(&mut context).is_pending(), "the object is not durable");
    let mut second = pin!(send(&server, "POST", MAPS, BODY));
    assert!(second.as_mut().poll(&mut context).is_pending(), "the conflict is not durable");
    durable.send_replace(Revision::MAX);
    assert_eq!((creation.await, second.await), (StatusCode::CREATED, StatusCode::CONFLICT));
}

async fn get(server: &ApiServer, path: &str) -> (StatusCode, serde_json::Value) {
    use http_body_util::BodyExt as _;
    let request = http::Request::builder().uri(path).body(Full::new(Bytes::new())).unwrap();
    let (parts, body) = server.handle(request).await.into_parts();
    let bytes = body.collect().await.unwrap().to_bytes();
    (parts.status, serde_json::from_slice(&bytes).unwrap_or_default())
}

#[tokio::test]
async fn a_full_disk_refuses_writes_and_serves_what_is_durable() {
    use http_body_util::BodyExt as _;
    const MAPS: &str = "/api/v1/namespaces/default/configmaps";
    let full = ordered_watch::Sender::new(None);
    let store = Store::with(Memory::new(Limits::default()), Some(Arc::new(Disk(full.subscribe()))));
    let server = ApiServer::on(Parts::new(store, Options::default(), None));
    server.bootstrap();
    assert_eq!(send(&server, "POST", MAPS, r#"{"metadata": {"name": "a"}}"#).await, StatusCode::CREATED);
    assert_eq!(send(&server, "GET", "/readyz", "").await, StatusCode::OK);
    let durable = server.revision();
    let watch = format!("{MAPS}?watch=true&resourceVersion={durable}");
    let watch = http::Request::builder().uri(watch).body(Full::new(Bytes::new())).unwrap();
    let mut events = server.handle(watch).await.into_body();

    // A write in flight when the disk becomes full: committed in memory only.
    let written = server.stages.store.get("configmaps", "default/a").unwrap();
    let registry = server.stages.resources.current();
    let resource = registry.stored("configmaps").unwrap();
    let mut object = written.object();
    object["data"] = serde_json::json!({"key": "lost"});
    server
        .stages
        .objects
        .put_without_steps(resource, "default/a", crate::storage::Expect::At(written.revision), object)
        .unwrap();
    full.send_replace(Some(durable));

    for endpoint in ["/readyz", "/healthz"] {
        assert_eq!(send(&server, "GET", endpoint, "").await, StatusCode::INTERNAL_SERVER_ERROR, "{endpoint}");
    }
    assert_eq!(send(&server, "GET", "/livez", "").await, StatusCode::OK);
    let body = r#"{"metadata": {"name": "b"}}"#;
    for path in [MAPS.to_owned(), format!("{MAPS}?watch=1")] {
        assert_eq!(send(&server, "POST", &path, body).await, StatusCode::INTERNAL_SERVER_ERROR, "{path}");
    }
    let (status, object) = get(&server, &format!("{MAPS}/a")).await;
    assert_eq!((status, &object["data"]), (StatusCode::OK, &serde_json::Value::Null));
    let (status, list) = get(&server, MAPS).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(list["metadata"]["resourceVersion"], durable.to_string());
    assert!(list["items"].as_array().unwrap().iter().all(|item| item["data"]["key"] != "lost"));
    let mut event = Box::pin(events.frame());
    assert!(futures_util::poll!(event.as_mut()).is_pending(), "the event is not durable");

    full.send_replace(None);
    let event = event.await.unwrap().unwrap().into_data().unwrap();
    let event: serde_json::Value = serde_json::from_slice(&event).unwrap();
    assert_eq!(event["object"]["data"]["key"], "lost");
    assert_eq!(get(&server, &format!("{MAPS}/a")).await.1["data"]["key"], "lost");
    assert_eq!(send(&server, "POST", MAPS, body).await, StatusCode::CREATED);
    assert_eq!(send(&server, "GET", "/readyz", "").await, StatusCode::OK);
}

#[tokio::test]
async fn discovery_waits_until_a_new_resource_is_durable() {
    const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    const CRD: &str = r#"{"metadata": {"name": "things.example.org"}, "spec": {
        "group": "example.org", "scope": "Cluster", "names": {"kind": "Thing", "plural": "things"},
        "versions": [{"name": "v1", "served": true, "storage": true,
            "schema": {"openAPIV3Schema": {"type": "object"}}}]}}"#;
    let durable = ordered_watch::Sender::new(Revision::MAX);
    let store = Store::with(Memory::new(Limits::default()), Some(Arc::new(Slow(durable.subscribe()))));
    let server = ApiServer::on(Parts::new(store, Options::default(), None));
    server.bootstrap();
    durable.send_replace(server.revision());
    let mut context = Context::from_waker(Waker::noop());
    let mut creation = pin!(send(&server, "POST", CRDS, CRD));
    assert!(creation.as_mut().poll(&mut context).is_pending(), "the CRD is not durable");
    let mut waiting = Vec::new();
    for path in ["/apis", "/apis/example.org/v1", "/openapi/v3", "/"] {
        let mut response = Box::pin(send(&server, "GET", path, ""));
        assert!(response.as_mut().poll(&mut context).is_pending(), "{path}");
        waiting.push(response);
    }
    for path in ["/healthz", "/readyz", "/livez", "/version"] {
        let mut response = Box::pin(send(&server, "GET", path, ""));
        assert_eq!(response.as_mut().poll(&mut context), Poll::Ready(StatusCode::OK), "{path}");
    }
    durable.send_replace(Revision::MAX);
    assert_eq!(creation.await, StatusCode::CREATED);
    for response in waiting {
        assert_eq!(response.await, StatusCode::OK);
    }
}

/// Reads wait for the log, so that they stay in flight.
#[tokio::test]
async fn read_only_requests_in_flight_are_limited() {
    const MAPS: &str = "/api/v1/namespaces/default/configmaps";
    let durable = ordered_watch::Sender::new(Revision::MAX);
    let store = Store::with(Memory::new(Limits::default()), Some(Arc::new(Slow(durable.subscribe()))));
    let authorization = crate::authz::Authorization::AlwaysAllow;
    let server = ApiServer::on(Parts::new(store, Options { authorization, ..Options::default() }, None));
    server.bootstrap();
    durable.send_replace(0);
    let read = |path: &str| {
        let user = crate::authn::User::authenticated("a", []);
        let request = http::Request::builder().uri(path).extension(user);
        server.handle(request.body(Full::new(Bytes::new())).unwrap())
    };
    let held: Vec<_> = (0..400).map(|_| read(MAPS)).collect();
    let mut held = Box::pin(futures_util::future::join_all(held));
    assert!(futures_util::poll!(held.as_mut()).is_pending(), "all 400 wait for the log");
    let refused = read(MAPS).await;
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(refused.headers()["retry-after"], "1");
    let watch = read(&format!("{MAPS}?watch=true&resourceVersion={}", server.revision())).await;
    assert_eq!(watch.status(), StatusCode::OK, "watches are not limited");
    durable.send_replace(Revision::MAX);
    for answered in held.await {
        assert_eq!(answered.status(), StatusCode::OK);
    }
    assert_eq!(read(MAPS).await.status(), StatusCode::OK, "the permits are returned");
}

/// The connection cannot be reused, because the rest of the body is not read.
#[tokio::test(start_paused = true)]
async fn an_early_refusal_over_http_1_closes_the_connection() {
    const MAPS: &str = "/api/v1/namespaces/default/configmaps";
    let full = ordered_watch::Sender::new(None);
    let store = Store::with(Memory::new(Limits::default()), Some(Arc::new(Disk(full.subscribe()))));
    let server = ApiServer::on(Parts::new(store, Options::default(), None));
    server.bootstrap();
    let refused = async |user: crate::authn::User, version: Version| {
        let chunk = || Ok::<_, io::Error>(http_body::Frame::data(Bytes::from(vec![b' '; 1 << 20])));
        let endless =
            http_body_util::StreamBody::new(futures_util::stream::iter(std::iter::repeat_with(chunk)));
        let request = http::Request::post(MAPS).version(version).extension(user);
        let request = request.extension(OverSocket { peer: None }).header("content-type", "application/json");
        let response = server.handle(request.body(endless).unwrap()).await;
        (response.status().as_u16(), response.headers().contains_key(header::CONNECTION))
    };
    let admin = crate::authn::User::admin;
    assert_eq!(refused(crate::authn::User::anonymous(), Version::HTTP_11).await, (403, true));
    assert_eq!(refused(admin(), Version::HTTP_11).await, (413, true));
    assert_eq!(refused(admin(), Version::HTTP_2).await, (413, false), "a stream of its own");
    full.send_replace(Some(server.revision()));
    assert_eq!(refused(admin(), Version::HTTP_11).await, (500, true));
}
