//! Setup for leader election tests: a server behind a connection that can break, and replicas that can be paused.
//! Nothing here asserts.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client};
use kubewright_apiserver::ApiServer;
use kubewright_runtime::internal::{Election, ElectionEnd, Fence, Leadership, ordered_watch};
use kubewright_runtime::{LeaderElectionOptions, TokioClock};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tower_service::Service;

/// 2026-01-01T00:00:00Z in microseconds.
const START: i64 = 1_767_225_600_000_000;

/// How a connection treats requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Line {
    Up,
    Refusing,
    Hanging,
}

/// A server and the shared clock.
pub(crate) struct World {
    server: ApiServer,
    clock: TokioClock,
    began: Instant,
    /// All requests, with time and replica.
    trace: Arc<Mutex<Vec<String>>>,
}

impl World {
    pub(crate) fn new() -> Self {
        let options = kubewright_apiserver::Options {
            clock: Arc::new(kubewright_apiserver::clock::TokioClock::starting_at(START)),
            seed: Some(1),
            ..kubewright_apiserver::Options::default()
        };
        Self {
            server: ApiServer::new(options),
            clock: TokioClock::starting_at(
                Timestamp::from_microsecond(START).expect("the start is a valid time"),
            ),
            began: Instant::now(),
            trace: Arc::default(),
        }
    }

    /// A client that does not take part in the election.
    pub(crate) fn client(&self) -> Client {
        Client::new(self.server.clone(), "default")
    }

    pub(crate) fn leases(&self) -> Api<Lease> {
        Api::namespaced(self.client(), "default")
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    pub(crate) fn trace(&self) -> Vec<String> {
        self.trace.lock().expect("no test panics there").clone()
    }

    /// A contender for the Lease `lock`, with its own connection.
    pub(crate) fn election(&self, identity: &str, seed: u64) -> (Election, watch::Sender<Line>) {
        let line = watch::Sender::new(Line::Up);
        let wire = Wire {
            server: self.server.clone(),
            line: line.subscribe(),
            who: identity.to_owned(),
            began: self.began,
            trace: self.trace.clone(),
        };
        let client = Client::new(wire, "default");
        let rng = fastrand::Rng::with_seed(seed);
        let options = LeaderElectionOptions {
            namespace: Some("default".to_owned()),
            identity: Some(identity.to_owned()),
            ..LeaderElectionOptions::new("lock")
        };
        let election = Election::new(client, options, Arc::new(self.clock), rng);
        (election.expect("the options are valid"), line)
    }

    pub(crate) fn replica(&self, identity: &str, seed: u64) -> Replica {
        let (election, line) = self.election(identity, seed);
        Replica::start(election, line)
    }
}

/// A running contender.
pub(crate) struct Replica {
    pub(crate) fence: Fence,
    pub(crate) leadership: ordered_watch::Receiver<Leadership>,
    pub(crate) line: watch::Sender<Line>,
    pub(crate) running: JoinHandle<ElectionEnd>,
    stop: Option<oneshot::Sender<()>>,
    pause: Arc<Mutex<Pause>>,
}

impl Replica {
    pub(crate) fn start(election: Election, line: watch::Sender<Line>) -> Self {
        let (fence, leadership) = (election.fence(), election.leadership());
        let (stop, stopped) = oneshot::channel();
        let pause = Arc::<Mutex<Pause>>::default();
        let run = election.run(async move {
            // A dropped sender is not a stop.
            if stopped.await.is_err() {
                std::future::pending::<()>().await;
            }
        });
        let running = tokio::spawn(Pausable { future: Box::pin(run), pause: pause.clone() });
        Self { fence, leadership, line, running, stop: Some(stop), pause }
    }

    pub(crate) async fn leads(&mut self) {
        let leading = self.leadership.wait_for(|now| matches!(now, Leadership::Leading { .. })).await;
        leading.expect("the election runs");
    }

    /// Requests a graceful stop.
    pub(crate) fn stop(&mut self) {
        self.stop.take().expect("it is stopped once").send(()).expect("it runs");
    }

    /// Pauses it until it is [resumed](Self::resume), like SIGSTOP.
    pub(crate) fn pause(&self) {
        self.pause.lock().expect("no test panics there").paused = true;
    }

    pub(crate) fn resume(&self) {
        let mut pause = self.pause.lock().expect("no test panics there");
        pause.paused = false;
        if let Some(waker) = pause.waker.take() {
            waker.wake();
        }
    }
}

#[derive(Default)]
struct Pause {
    paused: bool,
    waker: Option<Waker>,
}

struct Pausable<F> {
    future: Pin<Box<F>>,
    pause: Arc<Mutex<Pause>>,
}

impl<F: Future> Future for Pausable<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        {
            let mut pause = self.pause.lock().expect("no test panics there");
            pause.waker = Some(cx.waker().clone());
            if pause.paused {
                return Poll::Pending;
            }
        }
        self.future.as_mut().poll(cx)
    }
}

/// The connection of a replica to the server.
struct Wire {
    server: ApiServer,
    line: watch::Receiver<Line>,
    who: String,
    began: Instant,
    trace: Arc<Mutex<Vec<String>>>,
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;
type Answer = <ApiServer as Service<http::Request<kube::client::Body>>>::Response;

impl Service<http::Request<kube::client::Body>> for Wire {
    type Response = Answer;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Answer, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<kube::client::Body>) -> Self::Future {
        let line = *self.line.borrow();
        let (time, method) = (self.began.elapsed(), request.method());
        let entry = format!("{:.6} {} {method} {line:?}", time.as_secs_f64(), self.who);
        self.trace.lock().expect("no test panics there").push(entry);
        match line {
            Line::Up => {
                let answer = self.server.call(request);
                Box::pin(async move { Ok(answer.await?) })
            }
            Line::Refusing => Box::pin(async { Err("connection refused".into()) }),
            Line::Hanging => Box::pin(std::future::pending()),
        }
    }
}
