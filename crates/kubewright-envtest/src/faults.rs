//! Fault injection: a connection that fails on demand and records requests.
//!
//! It sits between the clients and the control plane. Requests can be delayed, refused, rejected with an error, or lose
//! their response after they took effect. Open watches can be cut, ended, stalled or expired. Reads can be stale.
//! Without rules it changes nothing, and random faults follow a seed.

mod body;
mod request;

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Request, Response};
use kube::client::Body;
use kubewright_apiserver::ApiServer;
use serde_json::json;
use tower_service::Service;

use self::body::{Answer, Source, StreamFault, Valve};
pub use self::request::RecordedRequest;
use crate::operator::Operator;

/// The effect on a request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Effect {
    /// The server receives the request after this delay.
    Delay(Duration),
    /// The request gets this status code and reason; the server does not receive it.
    Status(u16, &'static str),
    /// The connection fails; the server does not receive the request.
    Refuse,
    /// The server executes the request, but the connection breaks before the response.
    LoseResponse,
    /// There is no response; the server does not receive the request.
    Hang,
}

impl Effect {
    /// 409 Conflict.
    pub fn conflict() -> Self {
        Self::Status(409, "Conflict")
    }

    /// 429 Too Many Requests.
    pub fn too_many_requests() -> Self {
        Self::Status(429, "TooManyRequests")
    }

    /// 500 Internal Server Error.
    pub fn internal_error() -> Self {
        Self::Status(500, "InternalError")
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Delay(_) => "delayed",
            Self::Status(..) => "error injected",
            Self::Refuse => "refused",
            Self::LoseResponse => "response lost",
            Self::Hang => "hung",
        }
    }
}

type Matcher = Box<dyn Fn(&RecordedRequest) -> bool + Send>;

struct Rule {
    matches: Matcher,
    when: When,
    effect: Effect,
}

enum When {
    Next(usize),
    /// One in this many, at random.
    Sometimes(fastrand::Rng, u32),
}

#[derive(Default)]
struct State {
    requests: Vec<RecordedRequest>,
    rules: Vec<Rule>,
    watches: Vec<Weak<Valve>>,
    /// The server for stale reads, if enabled.
    past: Option<ApiServer>,
}

/// Injects faults into a connection. Cheap to clone; clones share the connection.
///
/// [`Faults::operator`] affects the operator only, so that the test's own requests succeed:
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use kubewright_envtest::{Effect, Environment};
/// let env = Environment::start().await?;
/// env.faults().operator().next(1, Effect::conflict(), |request| request.is_of("configmaps") && request.is_write());
/// # Ok(())
/// # }
/// ```
///
/// Without it, every client of the environment is affected:
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use kubewright_envtest::{Effect, Environment};
///
/// let env = Environment::start().await?;
/// env.faults().next(1, Effect::internal_error(), |request| request.is_of("configmaps") && request.is_write());
/// # let map = kubewright_envtest::objects("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}")?.remove(0);
/// assert!(env.apply(map.clone()).await.is_err());
/// assert!(env.apply(map).await.is_ok());
/// assert_eq!(env.faults().requests().iter().filter(|request| request.verb == "patch").count(), 2);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
pub struct Faults {
    state: Arc<Mutex<State>>,
    /// Whether only requests of operators are affected.
    is_of_operator: bool,
}

impl Faults {
    /// The connection of the test's clients.
    pub(crate) fn connection(&self, target: Target) -> Connection {
        Connection { target, faults: self.clone(), operator: None }
    }

    /// The connection of an operator.
    pub(crate) fn operator_connection(&self, target: Target, operator: Arc<Operator>) -> Connection {
        Connection { target, faults: self.clone(), operator: Some(operator) }
    }

    /// A view of the same connection that affects and counts only requests of the environment's managers, not those of
    /// the test's own clients.
    #[must_use]
    pub fn operator(&self) -> Self {
        Self { is_of_operator: true, ..self.clone() }
    }

    fn concerns(&self, request: &RecordedRequest) -> bool {
        !self.is_of_operator || request.is_operator
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All requests so far, in order.
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.state().requests.iter().filter(|request| self.concerns(request)).cloned().collect()
    }

    /// The number of matching requests.
    pub fn count(&self, matches: impl Fn(&RecordedRequest) -> bool) -> usize {
        self.state().requests.iter().filter(|request| self.concerns(request) && matches(request)).count()
    }

    /// Clears the recorded requests.
    pub fn forget(&self) {
        self.state().requests.clear();
    }

    /// Applies `effect` to the next `times` matching requests. The first matching rule wins.
    pub fn next(
        &self,
        times: usize,
        effect: Effect,
        matches: impl Fn(&RecordedRequest) -> bool + Send + 'static,
    ) {
        self.rule(When::Next(times), effect, matches);
    }

    /// Applies `effect` to every matching request until [`Faults::heal`].
    pub fn every(&self, effect: Effect, matches: impl Fn(&RecordedRequest) -> bool + Send + 'static) {
        self.next(usize::MAX, effect, matches);
    }

    /// Applies `effect` to one in `one_in` matching requests until [`Faults::heal`], chosen by the seed.
    pub fn sometimes(
        &self,
        seed: u64,
        one_in: u32,
        effect: Effect,
        matches: impl Fn(&RecordedRequest) -> bool + Send + 'static,
    ) {
        self.rule(When::Sometimes(fastrand::Rng::with_seed(seed), one_in.max(1)), effect, matches);
    }

    fn rule(&self, when: When, effect: Effect, matches: impl Fn(&RecordedRequest) -> bool + Send + 'static) {
        let is_of_operator = self.is_of_operator;
        let matches =
            move |request: &RecordedRequest| (!is_of_operator || request.is_operator) && matches(request);
        self.state().rules.push(Rule { matches: Box::new(matches), when, effect });
    }

    /// Removes all rules, also those of other views, resumes stalled watches and ends stale reads.
    pub fn heal(&self) {
        let mut state = self.state();
        state.rules.clear();
        state.past = None;
        drop(state);
        Self { is_of_operator: false, ..self.clone() }.meet(None, |_| true);
    }

    /// Simulates an outage: open watches break, and all requests fail until [`Faults::heal`].
    pub fn down(&self) {
        self.every(Effect::Refuse, |_| true);
        self.cut(|_| true);
    }

    /// Breaks matching watches. Returns their number.
    pub fn cut(&self, matches: impl Fn(&RecordedRequest) -> bool) -> usize {
        self.meet(Some(StreamFault::Cut), matches)
    }

    /// Ends matching watches like a server does. Returns their number.
    pub fn end(&self, matches: impl Fn(&RecordedRequest) -> bool) -> usize {
        self.meet(Some(StreamFault::End), matches)
    }

    /// Expires matching watches (410 Gone). Returns their number.
    pub fn expire(&self, matches: impl Fn(&RecordedRequest) -> bool) -> usize {
        self.meet(Some(StreamFault::Expire), matches)
    }

    /// Stops delivering events to matching watches without ending them. Returns their number.
    pub fn stall(&self, matches: impl Fn(&RecordedRequest) -> bool) -> usize {
        self.meet(Some(StreamFault::Stall), matches)
    }

    /// The number of matching open watches.
    pub fn watches(&self, matches: impl Fn(&RecordedRequest) -> bool) -> usize {
        self.open().iter().filter(|valve| self.concerns(&valve.request) && matches(&valve.request)).count()
    }

    /// Serves every get and list from `past` until [`Faults::heal`].
    pub(crate) fn read_from(&self, past: ApiServer) {
        self.state().past = Some(past);
    }

    fn open(&self) -> Vec<Arc<Valve>> {
        let mut state = self.state();
        state.watches.retain(|valve| valve.strong_count() > 0);
        state.watches.iter().filter_map(Weak::upgrade).collect()
    }

    fn meet(&self, fate: Option<StreamFault>, matches: impl Fn(&RecordedRequest) -> bool) -> usize {
        let valves = self.open();
        let hit = valves.iter().filter(|valve| self.concerns(&valve.request) && matches(&valve.request));
        hit.map(|valve| valve.meet(fate)).count()
    }

    /// Records a request and returns its effect.
    fn note(&self, request: &RecordedRequest) -> (usize, Option<Effect>, Option<ApiServer>) {
        let mut state = self.state();
        let effect = state.rules.iter_mut().filter(|rule| (rule.matches)(request)).find_map(|rule| {
            let hit = match &mut rule.when {
                When::Next(0) => false,
                When::Next(left) => {
                    *left -= 1;
                    true
                }
                When::Sometimes(rng, one_in) => rng.u32(..*one_in) == 0,
            };
            hit.then(|| rule.effect.clone())
        });
        let past = state.past.clone().filter(|_| matches!(request.verb, "get" | "list"));
        let number = state.requests.len();
        state.requests.push(RecordedRequest { fault: effect.as_ref().map(Effect::name), ..request.clone() });
        (number, effect, past)
    }

    fn answered(&self, number: usize, code: u16) {
        if let Some(request) = self.state().requests.get_mut(number) {
            request.code = Some(code);
        }
    }
}

/// The server behind a connection.
#[derive(Clone)]
pub(crate) enum Target {
    Embedded(ApiServer),
    Remote(kube::Client),
}

impl Target {
    /// A client without faults, whose requests are not recorded.
    pub(crate) fn client(&self) -> kube::Client {
        match self {
            Self::Embedded(server) => kube::Client::new(server.clone(), "default"),
            Self::Remote(client) => client.clone(),
        }
    }

    async fn ask(self, request: Request<Body>) -> io::Result<Response<Source>> {
        match self {
            Self::Embedded(server) => Ok(server.handle(request).await.map(Source::Embedded)),
            Self::Remote(client) => {
                client.send(request).await.map(|it| it.map(Source::Remote)).map_err(io::Error::other)
            }
        }
    }
}

/// The connection as a `tower` service.
#[derive(Clone)]
pub(crate) struct Connection {
    target: Target,
    faults: Faults,
    /// The operator that uses the connection; `None` for the test's own clients.
    operator: Option<Arc<Operator>>,
}

impl Service<Request<Body>> for Connection {
    type Response = Response<Answer>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Response<Answer>>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let Self { target, faults, operator } = self.clone();
        let is_operator = operator.is_some();
        // While it acts as the administrator, its calls are not recorded as permissions.
        let operator = operator.filter(|operator| operator.user().is_some());
        if let Some(user) = operator.as_ref().and_then(|operator| operator.user()) {
            request.headers_mut().insert("impersonate-user", user.clone());
        }
        let recorded = RecordedRequest { is_operator, ..RecordedRequest::new(&request) };
        let (number, effect, past) = faults.note(&recorded);
        Box::pin(async move {
            match effect {
                None => {}
                Some(Effect::Status(code, reason)) => {
                    faults.answered(number, code);
                    return Ok(status(code, reason));
                }
                Some(Effect::Refuse) => return Err(io::ErrorKind::ConnectionRefused.into()),
                Some(Effect::Hang) => std::future::pending().await,
                Some(Effect::Delay(time)) => tokio::time::sleep(time).await,
                Some(Effect::LoseResponse) => {
                    let response = target.ask(request).await?;
                    if let Some(operator) = operator {
                        operator.note(&recorded, response.status().as_u16());
                    }
                    return Err(io::ErrorKind::ConnectionReset.into());
                }
            }
            let target = past.map_or(target, Target::Embedded);
            let response = target.ask(request).await?;
            faults.answered(number, response.status().as_u16());
            if let Some(operator) = operator {
                operator.note(&recorded, response.status().as_u16());
            }
            let valve = recorded.is_watch().then(|| Arc::new(Valve::new(recorded)));
            if let Some(valve) = &valve {
                faults.state().watches.push(Arc::downgrade(valve));
            }
            Ok(response.map(|body| Answer::new(body, valve)))
        })
    }
}

fn status(code: u16, reason: &str) -> Response<Answer> {
    let body = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": format!("injected by the test: {reason}"), "reason": reason, "code": code,
    });
    let response = Response::builder().status(code).header("content-type", "application/json");
    let body = kubewright_apiserver::Body::from(body.to_string());
    response.body(Answer::new(Source::Embedded(body), None)).expect("the response is valid")
}
