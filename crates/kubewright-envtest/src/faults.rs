//! A connection that fails when told to, and remembers what was asked.
//!
//! It stands where the network is, in front of every control plane. Requests can be delayed, refused, answered by
//! somebody else, or lost after they took effect; open watches can be cut, ended, stalled, or told that they are too
//! old; reads can come from the past. What it is not told to do it does not do, and what is left to chance follows a
//! seed.

mod asked;
mod body;

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

pub use self::asked::Asked;
use self::body::{Answer, Fate, Source, Valve};
use crate::operator::Operator;

/// What happens to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Effect {
    /// The server sees it so much later.
    Delay(Duration),
    /// Somebody answers with an error instead of the server: its code and reason.
    Status(u16, &'static str),
    /// The connection cannot be made; the server sees nothing.
    Refuse,
    /// The server does it, and the connection breaks before the answer arrives.
    LoseAnswer,
    /// There is never an answer; the server sees nothing.
    Hang,
}

impl Effect {
    /// A conflict.
    pub fn conflict() -> Self {
        Self::Status(409, "Conflict")
    }

    /// The server asks to come back later.
    pub fn too_many_requests() -> Self {
        Self::Status(429, "TooManyRequests")
    }

    /// The server is out of order.
    pub fn internal_error() -> Self {
        Self::Status(500, "InternalError")
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Delay(_) => "delayed",
            Self::Status(..) => "answered by somebody else",
            Self::Refuse => "refused",
            Self::LoseAnswer => "answer lost",
            Self::Hang => "hung",
        }
    }
}

type Matcher = Box<dyn Fn(&Asked) -> bool + Send>;

struct Rule {
    matches: Matcher,
    when: When,
    effect: Effect,
}

enum When {
    Next(usize),
    /// One in so many, by lot.
    Sometimes(fastrand::Rng, u32),
}

#[derive(Default)]
struct State {
    asked: Vec<Asked>,
    rules: Vec<Rule>,
    watches: Vec<Weak<Valve>>,
    /// What reads are answered from, if not from now.
    past: Option<ApiServer>,
}

/// Tells a connection how to fail. Cheap to clone; clones are of the same connection.
///
/// [`Faults::operator`] concerns the operator alone, so that the test's own requests go through:
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use kubewright_envtest::{Effect, Environment};
/// let env = Environment::start().await?;
/// env.faults().operator().next(1, Effect::conflict(), |asked| asked.is_of("configmaps") && asked.is_write());
/// # Ok(())
/// # }
/// ```
///
/// Without it, every client of the environment is concerned:
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use kubewright_envtest::{Effect, Environment};
///
/// let env = Environment::start().await?;
/// env.faults().next(1, Effect::internal_error(), |asked| asked.is_of("configmaps") && asked.is_write());
/// # let map = kubewright_envtest::objects("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}")?.remove(0);
/// assert!(env.apply(map.clone()).await.is_err());
/// assert!(env.apply(map).await.is_ok());
/// assert_eq!(env.faults().asked().iter().filter(|asked| asked.verb == "patch").count(), 2);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
pub struct Faults {
    state: Arc<Mutex<State>>,
    /// Whether only requests of operators are looked at.
    is_of_operator: bool,
}

impl Faults {
    /// The connection to a server, or to whatever a client reaches.
    pub(crate) fn connection(&self, target: Target) -> Connection {
        Connection { target, faults: self.clone(), operator: None }
    }

    /// The connection of an operator.
    pub(crate) fn operator_connection(&self, target: Target, operator: Arc<Operator>) -> Connection {
        Connection { target, faults: self.clone(), operator: Some(operator) }
    }

    /// The same connection, as far as operators use it: rules made here, and what is counted here, concern requests of
    /// the environment's managers, and not those of the test's own clients.
    #[must_use]
    pub fn operator(&self) -> Self {
        Self { is_of_operator: true, ..self.clone() }
    }

    fn concerns(&self, asked: &Asked) -> bool {
        !self.is_of_operator || asked.is_operator
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Everything that was asked, in its order.
    pub fn asked(&self) -> Vec<Asked> {
        self.state().asked.iter().filter(|asked| self.concerns(asked)).cloned().collect()
    }

    /// How many such requests there were.
    pub fn count(&self, matches: impl Fn(&Asked) -> bool) -> usize {
        self.state().asked.iter().filter(|asked| self.concerns(asked) && matches(asked)).count()
    }

    /// Forgets what was asked.
    pub fn forget(&self) {
        self.state().asked.clear();
    }

    /// The next `times` such requests meet `effect`. Rules are tried in the order in which they were made.
    pub fn next(&self, times: usize, effect: Effect, matches: impl Fn(&Asked) -> bool + Send + 'static) {
        self.rule(When::Next(times), effect, matches);
    }

    /// Every such request meets `effect` until [`Faults::heal`].
    pub fn every(&self, effect: Effect, matches: impl Fn(&Asked) -> bool + Send + 'static) {
        self.next(usize::MAX, effect, matches);
    }

    /// One in `one_in` such requests meets `effect`, until [`Faults::heal`]; which ones, the seed decides.
    pub fn sometimes(
        &self,
        seed: u64,
        one_in: u32,
        effect: Effect,
        matches: impl Fn(&Asked) -> bool + Send + 'static,
    ) {
        self.rule(When::Sometimes(fastrand::Rng::with_seed(seed), one_in.max(1)), effect, matches);
    }

    fn rule(&self, when: When, effect: Effect, matches: impl Fn(&Asked) -> bool + Send + 'static) {
        let is_of_operator = self.is_of_operator;
        let matches = move |asked: &Asked| (!is_of_operator || asked.is_operator) && matches(asked);
        self.state().rules.push(Rule { matches: Box::new(matches), when, effect });
    }

    /// Forgets all rules, those of other views too, lets stalled watches go on and reads come from now.
    pub fn heal(&self) {
        let mut state = self.state();
        state.rules.clear();
        state.past = None;
        drop(state);
        Self { is_of_operator: false, ..self.clone() }.meet(None, |_| true);
    }

    /// The server is gone: open watches break, and nothing can be asked until [`Faults::heal`].
    pub fn down(&self) {
        self.every(Effect::Refuse, |_| true);
        self.cut(|_| true);
    }

    /// Breaks such watches. Says how many.
    pub fn cut(&self, matches: impl Fn(&Asked) -> bool) -> usize {
        self.meet(Some(Fate::Cut), matches)
    }

    /// Ends such watches as a server does. Says how many.
    pub fn end(&self, matches: impl Fn(&Asked) -> bool) -> usize {
        self.meet(Some(Fate::End), matches)
    }

    /// Tells such watches that they are too old (410), and ends them. Says how many.
    pub fn expire(&self, matches: impl Fn(&Asked) -> bool) -> usize {
        self.meet(Some(Fate::Expire), matches)
    }

    /// Delivers nothing to such watches any more, without ending them. Says how many.
    pub fn stall(&self, matches: impl Fn(&Asked) -> bool) -> usize {
        self.meet(Some(Fate::Stall), matches)
    }

    /// How many such watches are open.
    pub fn watches(&self, matches: impl Fn(&Asked) -> bool) -> usize {
        self.open().iter().filter(|valve| self.concerns(&valve.asked) && matches(&valve.asked)).count()
    }

    /// Answers every get and list as things are now, whatever happens from here on, until [`Faults::heal`].
    pub(crate) fn read_from(&self, past: ApiServer) {
        self.state().past = Some(past);
    }

    fn open(&self) -> Vec<Arc<Valve>> {
        let mut state = self.state();
        state.watches.retain(|valve| valve.strong_count() > 0);
        state.watches.iter().filter_map(Weak::upgrade).collect()
    }

    fn meet(&self, fate: Option<Fate>, matches: impl Fn(&Asked) -> bool) -> usize {
        let valves = self.open();
        let hit = valves.iter().filter(|valve| self.concerns(&valve.asked) && matches(&valve.asked));
        hit.map(|valve| valve.meet(fate)).count()
    }

    /// Notes a request, and says what happens to it.
    fn note(&self, asked: &Asked) -> (usize, Option<Effect>, Option<ApiServer>) {
        let mut state = self.state();
        let effect = state.rules.iter_mut().filter(|rule| (rule.matches)(asked)).find_map(|rule| {
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
        let past = state.past.clone().filter(|_| matches!(asked.verb, "get" | "list"));
        let number = state.asked.len();
        state.asked.push(Asked { fault: effect.as_ref().map(Effect::name), ..asked.clone() });
        (number, effect, past)
    }

    fn answered(&self, number: usize, code: u16) {
        if let Some(asked) = self.state().asked.get_mut(number) {
            asked.code = Some(code);
        }
    }
}

/// What a connection leads to.
#[derive(Clone)]
pub(crate) enum Target {
    Embedded(ApiServer),
    Remote(kube::Client),
}

impl Target {
    async fn ask(self, request: Request<Body>) -> io::Result<Response<Source>> {
        match self {
            Self::Embedded(server) => Ok(server.handle(request).await.map(Source::Embedded)),
            Self::Remote(client) => {
                client.send(request).await.map(|it| it.map(Source::Remote)).map_err(io::Error::other)
            }
        }
    }
}

/// The connection itself, as a `tower` service.
#[derive(Clone)]
pub(crate) struct Connection {
    target: Target,
    faults: Faults,
    /// The user of the request, if the test's own client did not send it.
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
        // While it acts as the administrator, nothing is learned about its permissions.
        let operator = operator.filter(|operator| operator.user().is_some());
        if let Some(user) = operator.as_ref().and_then(|operator| operator.user()) {
            request.headers_mut().insert("impersonate-user", user.clone());
        }
        let asked = Asked { is_operator, ..Asked::new(&request) };
        let (number, effect, past) = faults.note(&asked);
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
                Some(Effect::LoseAnswer) => {
                    let response = target.ask(request).await?;
                    if let Some(operator) = operator {
                        operator.note(&asked, response.status().as_u16());
                    }
                    return Err(io::ErrorKind::ConnectionReset.into());
                }
            }
            let target = past.map_or(target, Target::Embedded);
            let response = target.ask(request).await?;
            faults.answered(number, response.status().as_u16());
            if let Some(operator) = operator {
                operator.note(&asked, response.status().as_u16());
            }
            let valve = asked.is_watch().then(|| Arc::new(Valve::new(asked)));
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
        "message": format!("as the test has it: {reason}"), "reason": reason, "code": code,
    });
    let response = Response::builder().status(code).header("content-type", "application/json");
    let body = kubewright_apiserver::Body::from(body.to_string());
    response.body(Answer::new(Source::Embedded(body), None)).expect("a status and a body make an answer")
}
