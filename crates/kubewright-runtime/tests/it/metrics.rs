//! Authentication and authorization of metrics requests by the embedded API server.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::Result;
use http::{HeaderMap, Method, Request, header};
use http_body_util::BodyExt as _;
use kube::Client;
use kubewright_apiserver::authn::{MASTERS, User};
use kubewright_apiserver::authz::{Action, ActionOn, Authorization, Authorizer};
use kubewright_apiserver::{ApiServer, Options};
use kubewright_runtime::metrics::{Guard, Metrics};
use tower::ServiceExt as _;

use crate::serve::{Running, get, local};

/// The user prometheus may get the metrics, administrators everything.
struct Rules;

impl Authorizer for Rules {
    fn allows(&self, user: &User, action: Action<'_>) -> bool {
        let scrape = action.verb == "get" && matches!(action.on, ActionOn::Path("/metrics"));
        user.is_in(MASTERS) || scrape && user.name == "prometheus" && user.is_in("system:authenticated")
    }
}

/// A client of a server with two tokens, and the number of requests that it received.
fn cluster() -> (Client, Arc<AtomicUsize>) {
    let authorization = Authorization::Custom(Arc::new(Rules));
    let options = Options { seed: Some(1), authorization, ..Options::default() };
    let server = ApiServer::new(options);
    server.add_token("scrape", User::authenticated("prometheus", []));
    server.add_token("curious", User::authenticated("eve", []));
    let asked = Arc::new(AtomicUsize::new(0));
    let counting = asked.clone();
    let service = server.map_request(move |request: Request<kube::client::Body>| {
        counting.fetch_add(1, Ordering::SeqCst);
        request
    });
    (Client::new(service, "default"), asked)
}

/// The guard's response to a token; 200 if the request is allowed.
async fn seen(guard: &Guard, token: &str) -> (u16, String) {
    let headers = HeaderMap::from_iter([(
        header::AUTHORIZATION,
        format!("Bearer {token}").parse().expect("the token is a valid header"),
    )]);
    match guard.check(&Method::GET, "/metrics", &headers).await {
        Ok(()) => (200, String::new()),
        Err(refusal) => {
            let status = refusal.status().as_u16();
            let body = refusal.into_body().collect().await.expect("the body is complete").to_bytes();
            (status, String::from_utf8_lossy(&body).into_owned())
        }
    }
}

#[tokio::test(start_paused = true)]
async fn requests_are_authorized_by_the_api_server() {
    let (client, _) = cluster();
    let guard = Guard::new(client);
    assert_eq!(seen(&guard, "scrape").await, (200, String::new()));
    assert_eq!(seen(&guard, "bogus").await, (401, "Unauthorized\n".to_owned()));
    assert_eq!(seen(&guard, "curious").await, (403, "Authorization denied for user eve\n".to_owned()));
    let refusal = guard.check(&Method::GET, "/metrics", &HeaderMap::new()).await;
    assert_eq!(refusal.map_err(|refusal| refusal.status().as_u16()), Err(401));
}

#[tokio::test(start_paused = true)]
async fn review_results_are_cached_until_they_expire() {
    let (client, asked) = cluster();
    let guard = Guard::new(client);
    let asks = async |token: &str| {
        let before = asked.load(Ordering::SeqCst);
        seen(&guard, token).await;
        asked.load(Ordering::SeqCst) - before
    };
    // One TokenReview and one SubjectAccessReview, then none.
    assert_eq!((asks("scrape").await, asks("scrape").await), (2, 0));
    assert_eq!((asks("curious").await, asks("curious").await), (2, 0));
    assert_eq!((asks("bogus").await, asks("bogus").await), (1, 0));
    tokio::time::advance(Duration::from_secs(5)).await;
    // A denial is cached for 5 seconds, a token and a permission for 10.
    assert_eq!((asks("scrape").await, asks("curious").await, asks("bogus").await), (0, 1, 0));
    tokio::time::advance(Duration::from_secs(5)).await;
    assert_eq!((asks("scrape").await, asks("curious").await, asks("bogus").await), (2, 2, 1));
}

#[tokio::test(start_paused = true)]
async fn requests_are_denied_while_the_api_server_is_unavailable() {
    let (server, _) = cluster();
    let broken = Arc::new(std::sync::atomic::AtomicBool::new(true));
    let state = broken.clone();
    let service = tower::service_fn(move |request: Request<kube::client::Body>| {
        let (server, broken) = (server.clone(), state.load(Ordering::SeqCst));
        async move {
            if broken {
                return Err(kube::Error::LinesCodecMaxLineLengthExceeded);
            }
            server.send(request).await
        }
    });
    let guard = Guard::new(Client::new(service, "default"));
    assert_eq!(seen(&guard, "scrape").await, (500, "Authentication failed\n".to_owned()));
    // The failure is not cached.
    broken.store(false, Ordering::SeqCst);
    assert_eq!(seen(&guard, "scrape").await.0, 200);
}

#[tokio::test]
async fn metrics_are_served_at_their_path_only_and_behind_the_guard() -> Result<()> {
    let (client, _) = cluster();
    let metrics = Metrics::new();
    let open = Running::start(local().await?, metrics.handler(None));
    let (status, page) = get(open.address, "/metrics").await?;
    assert_eq!(status, 200);
    assert!(page.contains("# TYPE process_start_time_seconds gauge"), "{page}");
    assert_eq!(get(open.address, "/").await?.0, 404);

    let guarded = Running::start(local().await?, metrics.handler(Some(Guard::new(client))));
    assert_eq!(get(guarded.address, "/metrics").await?, (401, "Unauthorized\n".to_owned()));
    assert_eq!(get(guarded.address, "/other").await?.0, 404);
    Ok(())
}
