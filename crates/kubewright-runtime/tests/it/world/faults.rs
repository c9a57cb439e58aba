//! A connection with fault injection that records all requests.
//!
//! Requests can be refused, answered with a given response, delayed or lost. Open watches can be broken, ended, stalled
//! or expired. Without rules it forwards everything.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body::Frame;
use kube::client::Body;
use kubewright_apiserver::ApiServer;
use serde_json::json;
use tokio::time::Instant;
use tower_service::Service;

/// A recorded request.
#[derive(Debug, Clone)]
pub(crate) struct RecordedRequest {
    pub(crate) method: Method,
    pub(crate) path: String,
    /// The query parameters, decoded.
    pub(crate) query: BTreeMap<String, String>,
    pub(crate) accept: String,
    pub(crate) content_type: String,
    pub(crate) at: Instant,
}

impl RecordedRequest {
    fn new<B>(request: &Request<B>) -> Self {
        let header = |name| {
            let value = request.headers().get(name).and_then(|value| value.to_str().ok());
            value.unwrap_or_default().to_owned()
        };
        let pairs = request.uri().query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
        Self {
            method: request.method().clone(),
            path: request.uri().path().to_owned(),
            query: pairs
                .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
                .map(|(name, value)| (name.to_owned(), decoded(value)))
                .collect(),
            accept: header("accept"),
            content_type: header("content-type"),
            at: Instant::now(),
        }
    }

    pub(crate) fn parameter(&self, name: &str) -> Option<&str> {
        self.query.get(name).map(String::as_str)
    }

    pub(crate) fn is_watch(&self) -> bool {
        self.parameter("watch").is_some_and(|watch| watch == "true" || watch == "1")
    }

    /// Whether the request reads existing objects: a list, or a watch that begins with one.
    pub(crate) fn is_list(&self) -> bool {
        let objects = self.method == Method::GET && !self.is_watch();
        (objects && self.parameter("limit").is_some()) || self.parameter("sendInitialEvents").is_some()
    }

    pub(crate) fn is_write(&self) -> bool {
        self.method != Method::GET
    }

    /// `GET /api/v1/pods`.
    pub(crate) fn line(&self) -> String {
        format!("{} {}", self.method, self.path)
    }
}

fn decoded(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let [byte, tail @ ..] = rest {
        let escaped = match (byte, tail) {
            (b'%', [high, low, after @ ..]) => {
                let digits = [*high, *low];
                let digits = std::str::from_utf8(&digits).ok();
                digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()).map(|byte| (byte, after))
            }
            _ => None,
        };
        let (byte, after) = escaped.unwrap_or((*byte, tail));
        bytes.push(byte);
        rest = after;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// What happens to a request.
#[derive(Debug, Clone)]
pub(crate) enum Effect {
    /// Responds with an error: code and reason.
    Status(u16, &'static str),
    /// Responds with this status code and body.
    Answer(u16, String),
    /// Refuses the connection: the server does not see the request.
    Refuse,
    /// The server processes the request, and the connection breaks before the response.
    Lose,
    /// The server processes the request, and the response never arrives.
    Swallow,
    /// No response ever arrives, and the server does not see the request.
    Hang,
    /// Delays the request.
    Delay(Duration),
    /// Opens a watch that delivers nothing until [`Faults::heal`].
    Mute,
}

type Matcher = Box<dyn Fn(&RecordedRequest) -> bool + Send>;

struct Rule {
    matches: Matcher,
    left: usize,
    effect: Effect,
}

/// What happens to an open watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StreamFault {
    Cut,
    End,
    Expire,
    Stall,
}

/// Controls the response of an open watch.
struct Valve {
    asked: RecordedRequest,
    state: Mutex<ValveState>,
}

struct ValveState {
    fate: Option<StreamFault>,
    waker: Option<Waker>,
}

#[derive(Default)]
struct State {
    asked: Vec<RecordedRequest>,
    rules: Vec<Rule>,
    watches: Vec<Weak<Valve>>,
}

/// Controls the faults of a connection. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct Faults {
    state: Arc<Mutex<State>>,
}

impl Faults {
    /// Creates the connection to a server.
    pub(crate) fn connection(&self, server: ApiServer) -> Connection {
        Connection { server, faults: self.clone() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All requests, in order.
    pub(crate) fn requests(&self) -> Vec<RecordedRequest> {
        self.state().asked.clone()
    }

    /// The number of matching requests.
    pub(crate) fn count(&self, matches: impl Fn(&RecordedRequest) -> bool) -> usize {
        self.state().asked.iter().filter(|asked| matches(asked)).count()
    }

    /// Clears the recorded requests.
    pub(crate) fn forget(&self) {
        self.state().asked.clear();
    }

    /// Applies `effect` to the next `times` matching requests. Rules are tried in the order in which they were added.
    pub(crate) fn next(
        &self,
        times: usize,
        effect: Effect,
        matches: impl Fn(&RecordedRequest) -> bool + Send + 'static,
    ) {
        self.state().rules.push(Rule { matches: Box::new(matches), left: times, effect });
    }

    /// Applies `effect` to all matching requests until [`Faults::heal`].
    pub(crate) fn every(&self, effect: Effect, matches: impl Fn(&RecordedRequest) -> bool + Send + 'static) {
        self.next(usize::MAX, effect, matches);
    }

    /// Removes all rules and resumes stalled watches.
    pub(crate) fn heal(&self) {
        self.state().rules.clear();
        self.meet(None, |_| true);
    }

    /// Simulates a server that is down: breaks open watches and refuses requests until [`Faults::heal`].
    pub(crate) fn down(&self) {
        self.every(Effect::Refuse, |_| true);
        self.cut(|_| true);
    }

    /// Breaks the matching watches. Returns their number.
    pub(crate) fn cut(&self, matches: impl Fn(&RecordedRequest) -> bool) -> usize {
        self.meet(Some(StreamFault::Cut), matches)
    }

    /// Ends the matching watches as the server does. Returns their number.
    pub(crate) fn end(&self, matches: impl Fn(&RecordedRequest) -> bool) -> usize {
        self.meet(Some(StreamFault::End), matches)
    }

    /// Ends the matching watches with an expired resourceVersion. Returns their number.
    pub(crate) fn expire(&self, matches: impl Fn(&RecordedRequest) -> bool) -> usize {
        self.meet(Some(StreamFault::Expire), matches)
    }

    /// Stalls the matching watches without ending them. Returns their number.
    pub(crate) fn stall(&self, matches: impl Fn(&RecordedRequest) -> bool) -> usize {
        self.meet(Some(StreamFault::Stall), matches)
    }

    /// The number of matching open watches.
    pub(crate) fn watches(&self, matches: impl Fn(&RecordedRequest) -> bool) -> usize {
        self.open().iter().filter(|valve| matches(&valve.asked)).count()
    }

    fn open(&self) -> Vec<Arc<Valve>> {
        let mut state = self.state();
        state.watches.retain(|valve| valve.strong_count() > 0);
        state.watches.iter().filter_map(Weak::upgrade).collect()
    }

    fn meet(&self, fate: Option<StreamFault>, matches: impl Fn(&RecordedRequest) -> bool) -> usize {
        let valves = self.open();
        let hit = valves.iter().filter(|valve| matches(&valve.asked));
        hit.map(|valve| valve.meet(fate)).count()
    }

    /// Records a request, and returns its effect.
    fn note(&self, asked: &RecordedRequest) -> Option<Effect> {
        let mut state = self.state();
        state.asked.push(asked.clone());
        let rule = state.rules.iter_mut().find(|rule| rule.left > 0 && (rule.matches)(asked))?;
        rule.left -= 1;
        Some(rule.effect.clone())
    }
}

impl Valve {
    fn meet(&self, fate: Option<StreamFault>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.fate = fate;
        if let Some(waker) = state.waker.take() {
            waker.wake();
        }
    }
}

/// The connection.
#[derive(Clone)]
pub(crate) struct Connection {
    server: ApiServer,
    faults: Faults,
}

impl Service<Request<Body>> for Connection {
    type Response = Response<Answer>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Response<Answer>>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let Self { server, faults } = self.clone();
        let asked = RecordedRequest::new(&request);
        let effect = faults.note(&asked);
        Box::pin(async move {
            let fate = matches!(effect, Some(Effect::Mute)).then_some(StreamFault::Stall);
            match effect {
                None | Some(Effect::Mute) => {}
                Some(Effect::Status(code, reason)) => return Ok(status(code, reason)),
                Some(Effect::Answer(code, body)) => return Ok(answer(code, body)),
                Some(Effect::Refuse) => return Err(io::ErrorKind::ConnectionRefused.into()),
                Some(Effect::Hang) => std::future::pending().await,
                Some(Effect::Delay(time)) => tokio::time::sleep(time).await,
                Some(Effect::Lose) => {
                    server.handle(request).await;
                    return Err(io::ErrorKind::ConnectionReset.into());
                }
                Some(Effect::Swallow) => {
                    server.handle(request).await;
                    return std::future::pending().await;
                }
            }
            let response = server.handle(request).await;
            let state = Mutex::new(ValveState { fate, waker: None });
            let valve = asked.is_watch().then(|| Arc::new(Valve { asked, state }));
            if let Some(valve) = &valve {
                faults.state().watches.push(Arc::downgrade(valve));
            }
            Ok(response.map(|body| Answer { body, valve, over: false }))
        })
    }
}

fn status(code: u16, reason: &str) -> Response<Answer> {
    let body = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": format!("injected by the test: {reason}"), "reason": reason, "code": code,
    });
    answer(code, body.to_string())
}

fn answer(code: u16, body: String) -> Response<Answer> {
    let body = kubewright_apiserver::Body::from(body);
    let response = Response::builder().status(code).header("content-type", "application/json");
    response.body(Answer { body, valve: None, over: false }).expect("the response is valid")
}

/// The body of a response.
pub(crate) struct Answer {
    body: kubewright_apiserver::Body,
    valve: Option<Arc<Valve>>,
    over: bool,
}

impl http_body::Body for Answer {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let answer = self.get_mut();
        if answer.over {
            return Poll::Ready(None);
        }
        let fate = answer.valve.as_ref().and_then(|valve| {
            let mut state = valve.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.waker = Some(cx.waker().clone());
            state.fate
        });
        answer.over = matches!(fate, Some(StreamFault::Cut | StreamFault::End | StreamFault::Expire));
        match fate {
            None => Pin::new(&mut answer.body)
                .poll_frame(cx)
                .map(|frame| frame.map(|frame| frame.map_err(|never: Infallible| match never {}))),
            Some(StreamFault::Stall) => Poll::Pending,
            Some(StreamFault::End) => Poll::Ready(None),
            Some(StreamFault::Cut) => Poll::Ready(Some(Err(io::ErrorKind::ConnectionReset.into()))),
            Some(StreamFault::Expire) => {
                let status = json!({
                    "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                    "message": "too old resource version: 1 (2)", "reason": "Expired", "code": 410,
                });
                let line = format!("{}\n", json!({"type": "ERROR", "object": status}));
                Poll::Ready(Some(Ok(Frame::data(line.into()))))
            }
        }
    }
}
