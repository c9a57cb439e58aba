//! Responses wait for the log, including those that report an error.

use std::io;
use std::pin::{Pin, pin};
use std::task::Waker;

use bytes::Bytes;
use http_body_util::Full;
use kubewright_sync::ordered_watch;

use super::*;
use crate::server::Options;
use crate::storage::{Durability, Limits, Memory, Recorded, Revision, Store};

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

    fn synced(&self, revision: Revision) -> Pin<Box<dyn Future<Output = io::Result<()>> + Send + '_>> {
        let mut durable = self.0.clone();
        Box::pin(async move {
            durable.wait_for(|durable| *durable >= revision).await.map(drop).map_err(io::Error::other)
        })
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
    let server = ApiServer::on(store, Options::default());
    server.inner.bootstrap();
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
