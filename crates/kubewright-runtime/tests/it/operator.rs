//! An operator under test: a manager that runs, reconcilers that are written down in the test, and what they noted.

use std::fmt::Display;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Result;
use futures_util::future::BoxFuture;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::Resource;
use kube::api::{Api, Patch, PatchParams};
use kube::core::NamespaceResourceScope;
use kubewright_runtime::logs::{self, Format};
use kubewright_runtime::{
    Context, Key, KeyReconciler, Manager, ManagerError, ManagerOptions, Object, Outcome, Reconciler,
    TokioClock,
};
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing_subscriber::fmt::MakeWriter;

use crate::world::{START, World, soon};

/// A manager that runs until it is told to end.
pub(crate) struct Running {
    pub(crate) task: tokio::task::JoinHandle<Result<(), ManagerError>>,
    pub(crate) stop: CancellationToken,
}

impl Running {
    pub(crate) fn start(manager: &Manager) -> Self {
        let stop = CancellationToken::new();
        let stopped = stop.clone().cancelled_owned();
        Self { task: tokio::spawn(manager.clone().run_until(stopped)), stop }
    }

    /// Ends it as SIGTERM does.
    pub(crate) async fn end(self) -> Result<()> {
        self.stop.cancel();
        soon("the end of the manager", self.task).await??;
        Ok(())
    }

    /// Waits for an end that it comes to by itself, and says why.
    pub(crate) async fn failed(self) -> Result<ManagerError> {
        match self.task.await? {
            Ok(()) => anyhow::bail!("the manager ended without an error"),
            Err(error) => Ok(error),
        }
    }
}

/// The options of the tests: a fixed seed, and the time of the test.
pub(crate) fn options() -> ManagerOptions {
    let start = jiff::Timestamp::from_microsecond(START).expect("the start of the tests is a moment");
    ManagerOptions {
        seed: Some(1),
        clock: Arc::new(TokioClock::starting_at(start)),
        ..ManagerOptions::new("test")
    }
}

/// A manager of the default namespace only: elsewhere the server has objects of its own.
pub(crate) fn manager(world: &World) -> Result<Manager> {
    Ok(Manager::new(world.kube.clone(), options().namespaces(["default"]))?)
}

/// What a test noted, and when.
#[derive(Clone)]
pub(crate) struct Notes {
    start: Instant,
    notes: Arc<Mutex<Vec<(Duration, String)>>>,
}

impl Notes {
    pub(crate) fn new() -> Self {
        Self { start: Instant::now(), notes: Arc::default() }
    }

    pub(crate) fn push(&self, note: impl Display) {
        self.notes.lock().unwrap().push((self.start.elapsed(), note.to_string()));
    }

    pub(crate) fn all(&self) -> Vec<String> {
        self.notes.lock().unwrap().iter().map(|(_, note)| note.clone()).collect()
    }

    /// What was noted since the last call of this.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.notes.lock().unwrap()).into_iter().map(|(_, note)| note).collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.notes.lock().unwrap().len()
    }

    /// All notes with their times.
    pub(crate) fn timed(&self) -> Vec<(Duration, String)> {
        self.notes.lock().unwrap().clone()
    }

    /// When a note was made.
    pub(crate) fn times(&self, note: &str) -> Vec<Duration> {
        let notes = self.notes.lock().unwrap();
        notes.iter().filter(|(_, it)| it == note).map(|(at, _)| *at).collect()
    }

    /// The pauses between notes of one kind, in milliseconds.
    pub(crate) fn pauses(&self, note: &str) -> Vec<u128> {
        self.times(note).windows(2).map(|pair| pair[1].saturating_sub(pair[0]).as_millis()).collect()
    }
}

type Act<K> = dyn for<'a> Fn(Option<Arc<K>>, &'a Context) -> BoxFuture<'a, kubewright_runtime::Result<Outcome>>
    + Send
    + Sync;

/// A reconciler that does what the test says. It is given no object when that is gone.
pub(crate) struct Acts<K>(Box<Act<K>>);

impl<K: Object> Acts<K> {
    pub(crate) fn new(
        act: impl for<'a> Fn(Option<Arc<K>>, &'a Context) -> BoxFuture<'a, kubewright_runtime::Result<Outcome>>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        Self(Box::new(act))
    }

    /// Notes `name`, or `name gone`.
    pub(crate) fn noting(notes: &Notes) -> Self {
        let notes = notes.clone();
        Self::new(move |object, cx| {
            let gone = if object.is_none() { " gone" } else { "" };
            notes.push(format!("{}{gone}", cx.key().name()));
            Box::pin(async { Ok(Outcome::done()) })
        })
    }
}

impl<K: Object> Reconciler for Acts<K> {
    type Object = K;

    async fn reconcile(&self, object: &K, cx: &Context) -> kubewright_runtime::Result<Outcome> {
        assert_eq!(Key::of(object), *cx.key());
        (self.0)(Some(cx.object_arc(object)), cx).await
    }

    async fn deleted(&self, key: &Key, cx: &Context) -> kubewright_runtime::Result<Outcome> {
        assert_eq!(key, cx.key());
        (self.0)(None, cx).await
    }

    async fn deselected(&self, key: &Key, cx: &Context) -> kubewright_runtime::Result<Outcome> {
        assert_eq!(key, cx.key());
        (self.0)(None, cx).await
    }
}

/// The same for keys that are no objects.
pub(crate) struct KeyActs(Box<KeyAct>);

type KeyAct = dyn for<'a> Fn(&'a Context) -> BoxFuture<'a, kubewright_runtime::Result<Outcome>> + Send + Sync;

impl KeyActs {
    pub(crate) fn new(
        act: impl for<'a> Fn(&'a Context) -> BoxFuture<'a, kubewright_runtime::Result<Outcome>>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        Self(Box::new(act))
    }
}

impl KeyReconciler for KeyActs {
    async fn reconcile(&self, key: &Key, cx: &Context) -> kubewright_runtime::Result<Outcome> {
        assert_eq!(key, cx.key());
        (self.0)(cx).await
    }
}

/// A value of the metrics page, by its name with labels.
pub(crate) fn metric(manager: &Manager, name: &str) -> Option<f64> {
    value(&manager.metrics().page(None).1, name)
}

/// A value of a metrics page, by its name with labels.
pub(crate) fn value(page: &str, name: &str) -> Option<f64> {
    let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
    line.parse().ok()
}

/// Merges a patch into an object in the default namespace.
pub(crate) async fn patch<K>(world: &World, name: &str, patch: Value) -> Result<K>
where
    K: Object + Resource<DynamicType = (), Scope = NamespaceResourceScope> + std::fmt::Debug,
{
    let api: Api<K> = world.api();
    Ok(api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?)
}

/// Changes something of an object that no spec is.
pub(crate) async fn touch<K>(world: &World, name: &str, value: &str) -> Result<K>
where
    K: Object + Resource<DynamicType = (), Scope = NamespaceResourceScope> + std::fmt::Debug,
{
    patch(world, name, json!({"metadata": {"annotations": {"touched": value}}})).await
}

/// A reference to an owner.
pub(crate) fn owner<K: Resource<DynamicType = ()>>(owner: &K, controller: bool) -> OwnerReference {
    let mut reference = owner.owner_ref(&()).expect("an object that is stored has a name and a uid");
    reference.controller = controller.then_some(true);
    reference
}

/// The log of this thread while it is held.
pub(crate) struct Log {
    lines: Lines,
    _set: tracing::subscriber::DefaultGuard,
}

impl Log {
    /// Everything that is logged from now on, on the runtime of a test.
    pub(crate) fn keep() -> Result<Self> {
        Self::keep_from("debug")
    }

    /// The same from a level on.
    pub(crate) fn keep_from(level: &str) -> Result<Self> {
        let lines = Lines::default();
        let options =
            logs::Options { format: Format::Text, level: Some(level.to_owned()), color: logs::Color::Never };
        let set = logs::capture(&options, lines.clone())?;
        Ok(Self { lines, _set: set })
    }

    /// The lines that say this.
    pub(crate) fn saying(&self, what: &str) -> Vec<String> {
        let bytes = self.lines.0.lock().unwrap().clone();
        let text = String::from_utf8(bytes).expect("a log is text");
        text.lines().filter(|line| line.contains(what)).map(str::to_owned).collect()
    }
}

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'w> MakeWriter<'w> for Lines {
    type Writer = Self;

    fn make_writer(&'w self) -> Self {
        self.clone()
    }
}

/// Counts how many are at something at once.
#[derive(Clone, Default)]
pub(crate) struct Crowd(Arc<Mutex<(usize, usize)>>);

/// One who is at it, until dropped.
pub(crate) struct Present(Arc<Mutex<(usize, usize)>>);

impl Crowd {
    pub(crate) fn enter(&self) -> Present {
        let mut counts = self.0.lock().unwrap();
        counts.0 += 1;
        counts.1 = counts.1.max(counts.0);
        Present(self.0.clone())
    }

    pub(crate) fn now(&self) -> usize {
        self.0.lock().unwrap().0
    }

    pub(crate) fn most(&self) -> usize {
        self.0.lock().unwrap().1
    }
}

impl Drop for Present {
    fn drop(&mut self) {
        self.0.lock().unwrap().0 -= 1;
    }
}
