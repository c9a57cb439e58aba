//! Malicious input: every response is a Status within the deadline, and the server still works afterwards.
//!
//! Each request runs on its own thread with the stack size of tokio's workers, so that deep recursion fails
//! here as in a server, and hangs are detected.

mod bodies;
mod custom;
mod isolation;
mod lists;
mod numbers;
mod patches;
mod roles;
mod sockets;
mod urls;

use std::sync::mpsc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use kubewright_apiserver::ApiServer;
use serde_json::Value;

/// Deadline of a request, in a debug build on a busy machine.
const DEADLINE: Duration = Duration::from_secs(30);
/// The stack size of tokio's workers.
const STACK: usize = 2 << 20;

/// Peak memory of the whole test process, with a test on every core. An expanded bomb needs far more.
const PEAK: u64 = 3 << 30;

pub(crate) const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// A complete response; of a watch its start.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The response must be a Status with a code below 500.
    #[track_caller]
    pub(crate) fn expect_refusal(&self, what: &str) -> Value {
        let body = self.json();
        let shown = String::from_utf8_lossy(&self.body[..self.body.len().min(600)]);
        assert!(self.status.is_client_error(), "{what}: {} {shown}", self.status);
        assert_eq!(body["kind"], "Status", "{what}: {shown}");
        assert_eq!(body["status"], "Failure", "{what}: {shown}");
        assert_eq!(body["code"], self.status.as_u16(), "{what}: {shown}");
        assert!(body["message"].as_str().is_some_and(|message| !message.is_empty()), "{what}: {shown}");
        assert!(self.body.len() < 1 << 20, "{what}: an answer of {} bytes", self.body.len());
        body
    }
}

/// Sends a request to a server. Panics if there is no response within the deadline.
#[track_caller]
pub(crate) fn send(server: &ApiServer, what: &str, request: Request<impl Into<Bytes>>) -> Answer {
    let server = server.clone();
    let request = request.map(|body| Full::new(body.into()));
    let watches = request.uri().to_string().contains("watch");
    let (answered, answer) = mpsc::channel();
    let run = move || {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
        let answer = runtime.block_on(async {
            let response = server.handle(request).await;
            let status = response.status();
            let mut body = Vec::new();
            let mut frames = response.into_body();
            // A watch does not end: read what is available immediately.
            let limit = if watches { Duration::ZERO } else { DEADLINE };
            while let Ok(Some(Ok(frame))) = tokio::time::timeout(limit, frames.frame()).await {
                body.extend_from_slice(frame.data_ref().map_or(&[], |data| data.as_ref()));
            }
            Answer { status, body }
        });
        // The receiver is gone if the deadline has passed.
        let _ = answered.send(answer);
    };
    let thread = std::thread::Builder::new().stack_size(STACK).spawn(run).expect("a thread starts");
    match answer.recv_timeout(DEADLINE) {
        Ok(answer) => answer,
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("{what}: no response within {DEADLINE:?}"),
        Err(mpsc::RecvTimeoutError::Disconnected) => {
            drop(thread.join());
            panic!("{what}: the server panicked");
        }
    }
}

pub(crate) fn request<B>(method: Method, path: &str, media: &str, body: B) -> Request<B> {
    let mut request = Request::builder().method(method).uri(path);
    if !media.is_empty() {
        request = request.header(http::header::CONTENT_TYPE, media);
    }
    request.body(body).expect("the test's own request is well-formed")
}

/// The server still works, and memory is within the limit.
#[track_caller]
pub(crate) fn expect_well(server: &ApiServer) {
    let body = r#"{"metadata":{"generateName":"well-"}}"#;
    let answer = send(server, "a plain request", request(Method::POST, MAPS, "application/json", body));
    assert_eq!(answer.status, StatusCode::CREATED);
    if let Some(peak) = peak_memory() {
        assert!(peak < PEAK, "the peak was {} MiB", peak >> 20);
    }
}

/// The peak memory of this process, if the system reports it.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
}
