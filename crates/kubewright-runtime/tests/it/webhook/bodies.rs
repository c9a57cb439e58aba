//! The memory of request bodies.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::Frame;
use http_body_util::Full;
use kubewright_runtime::webhook::{AdmissionHandler, AdmissionRequest, AdmissionResponse, Webhooks};
use serde_json::json;
use tokio::time::Instant;

const MIB: usize = 1024 * 1024;
/// The budget of all bodies, and the largest one.
const BUDGET: usize = 32 * MIB + 7 * MIB;

struct Allow;

impl AdmissionHandler for Allow {
    async fn handle(&self, _: &AdmissionRequest) -> AdmissionResponse {
        AdmissionResponse::allowed()
    }
}

fn webhooks() -> Webhooks {
    let webhooks = Webhooks::new();
    webhooks.admission("/allow", Allow).expect("the path is free");
    webhooks
}

/// A body that sends some frames and never ends. It counts what the server has read and not dropped.
struct HalfSent {
    frames: usize,
    held: Arc<AtomicUsize>,
    read: usize,
}

impl http_body::Body for HalfSent {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.frames == 0 {
            return Poll::Pending;
        }
        self.frames -= 1;
        let frame = Bytes::from(vec![b' '; 64 * 1024]);
        self.read += frame.len();
        self.held.fetch_add(frame.len(), Ordering::Relaxed);
        Poll::Ready(Some(Ok(Frame::data(frame))))
    }
}

impl Drop for HalfSent {
    fn drop(&mut self) {
        self.held.fetch_sub(self.read, Ordering::Relaxed);
    }
}

/// A review whose object has this size.
fn review(size: usize) -> http::Request<Full<Bytes>> {
    let review = json!({
        "kind": "AdmissionReview",
        "apiVersion": "admission.k8s.io/v1",
        "request": {
            "uid": "1", "operation": "CREATE",
            "object": { "metadata": { "name": "a" }, "data": { "key": "x".repeat(size) } },
        },
    });
    let request = http::Request::post("/allow").header("content-type", "application/json");
    request.body(Full::new(Bytes::from(review.to_string()))).expect("a request")
}

#[tokio::test(start_paused = true)]
async fn clients_that_do_not_finish_their_bodies_keep_nobody_out() {
    let webhooks = webhooks();
    let held = Arc::new(AtomicUsize::new(0));
    let hostile: Vec<_> = (0..100)
        .map(|_| {
            let (webhooks, held) = (webhooks.clone(), held.clone());
            tokio::spawn(async move {
                let body = HalfSent { frames: 6 * MIB / (64 * 1024), held, read: 0 };
                let request = http::Request::post("/allow?timeout=30s");
                webhooks.handle(request.body(body).expect("a request")).await.status()
            })
        })
        .collect();
    tokio::task::yield_now().await;
    for size in [100, 3 * MIB] {
        let start = Instant::now();
        assert_eq!(webhooks.handle(review(size)).await.status(), 200);
        assert!(start.elapsed() <= Duration::from_secs(2), "{:?}", start.elapsed());
        let held = held.load(Ordering::Relaxed);
        assert!(held > 0 && held <= BUDGET + 100 * 64 * 1024, "{held} bytes are held");
    }
    let mut statuses = Vec::new();
    for task in hostile {
        statuses.push(task.await.expect("no panic").as_u16());
    }
    assert!(statuses.contains(&503) && statuses.iter().all(|code| matches!(code, 503 | 504)), "{statuses:?}");
    assert_eq!(held.load(Ordering::Relaxed), 0);
}

#[tokio::test(start_paused = true)]
async fn large_bodies_wait_for_memory() {
    let webhooks = webhooks();
    let reviews: Vec<_> = (0..40)
        .map(|_| {
            let webhooks = webhooks.clone();
            tokio::spawn(async move { webhooks.handle(review(6 * MIB)).await.status() })
        })
        .collect();
    for review in reviews {
        assert_eq!(review.await.expect("no panic"), 200);
    }
}
