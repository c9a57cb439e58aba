//! The page of a manager: what it did, and the objects that it caches.
//!
//! Owns [`ManagerPage`], which the manager serves at `--debug-page-bind-address`. It reads records of the journal and
//! changes of the cache; it sends no request to the API server and changes nothing. [`Limits::MANAGER`] bounds its
//! memory. It shows names, owners, conditions and the paths of changed fields, but no other content of objects, so that
//! a reader of the page needs no permission to read them.

mod http;
mod state;
mod writers;

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use kubewright_runtime::cache::{Follower, Informer};
use kubewright_runtime::internal::debug_page::{Access, DebugPage, Observed};
use kubewright_runtime::internal::serve::Handler;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use self::state::State;
use self::writers::Writers;
use crate::model::Limits;

/// How often new informers are looked up.
const INFORMERS: Duration = Duration::from_secs(1);
/// Number of changes per update of the state, so that the lock is not held for long.
const CHANGES: usize = 100;

type Shared = crate::shared::Shared<State>;

/// The debug page of a manager. Cheap to clone.
#[derive(Clone)]
pub struct ManagerPage {
    shared: Arc<Shared>,
    writers: Arc<Writers>,
}

impl ManagerPage {
    /// Creates a page that shows nothing yet.
    pub fn new() -> Self {
        Self::with_limits(Limits::MANAGER)
    }

    fn with_limits(limits: Limits) -> Self {
        let shared = Shared::new(State::new(limits), format!("{:x}", now()));
        shared.update(State::tell_status);
        Self { shared: Arc::new(shared), writers: Arc::default() }
    }

    /// Shows a line of the operator's log.
    pub fn log(&self, line: &str) {
        self.shared.update(|state| state.log(line, now()));
    }
}

impl Default for ManagerPage {
    fn default() -> Self {
        Self::new()
    }
}

impl DebugPage for ManagerPage {
    fn follow(&self, observed: Observed) -> BoxFuture<'static, ()> {
        let page = self.clone();
        // From the start, because the informers list before the future runs.
        let writers = page.writers.clone();
        observed.cache.observe(Arc::new(move |kind, entry, object| writers.saw(kind, entry, object)));
        page.run(observed).boxed()
    }

    fn handler(&self, access: Access, stop: CancellationToken) -> Handler {
        http::handler(self.shared.clone(), access, stop)
    }
}

impl ManagerPage {
    async fn run(self, observed: Observed) {
        let Observed { operator, controllers, mut records, cache } = observed;
        self.shared.update(|state| state.started(operator, controllers, now()));
        let mut informers: Vec<Arc<Informer>> = Vec::new();
        // Dropping it aborts the followers.
        let mut followers = JoinSet::new();
        let mut look = interval(INFORMERS);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut batch = Vec::new();
        loop {
            tokio::select! {
                biased;
                _ = look.tick() => {
                    let all = cache.all();
                    for informer in &all {
                        if !informers.iter().any(|known| Arc::ptr_eq(known, informer)) {
                            let source = self.shared.update(|state| state.add_source(informer));
                            followers.spawn(follow(self.clone(), source, informer.follower()));
                        }
                    }
                    informers = all;
                    self.shared.update(|state| state.tell_kinds(&informers));
                }
                received = records.recv_many(&mut batch, CHANGES) => {
                    if received == 0 {
                        // The manager has stopped its controllers.
                        return;
                    }
                    self.shared.update(|state| batch.drain(..).for_each(|record| state.record(&record)));
                }
                Some(_) = followers.join_next() => {}
            }
        }
    }
}

/// Shows the objects of an informer until it stops.
async fn follow(page: ManagerPage, source: usize, mut follower: Follower) {
    while let Some(changes) = follower.next().await {
        for some in changes.chunks(CHANGES) {
            page.shared.update(|state| {
                for change in some {
                    state.see(source, change, &page.writers, now());
                }
            });
            tokio::task::yield_now().await;
        }
    }
    page.shared.update(|state| state.remove_source(source));
}

/// Milliseconds since 1970.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
