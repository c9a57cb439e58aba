//! Helpers for tests with a running manager: reconcilers defined by closures, and notes that they record.

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

/// A running manager.
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

    /// Stops it gracefully, like SIGTERM.
    pub(crate) async fn end(self) -> Result<()> {
        self.stop.cancel();
        soon("the end of the manager", self.task).await??;
        Ok(())
    }

    /// Waits until it stops by itself, and returns its error.
    pub(crate) async fn failed(self) -> Result<ManagerError> {
        match self.task.await? {
            Ok(()) => anyhow::bail!("the manager stopped without an error"),
            Err(error) => Ok(error),
        }
    }
}

/// Options with a fixed seed and the paused clock.
pub(crate) fn options() -> ManagerOptions {
    let start = jiff::Timestamp::from_microsecond(START).expect("the start is a valid time");
    ManagerOptions {
        seed: Some(1),
        clock: Arc::new(TokioClock::starting_at(start)),
        ..ManagerOptions::new("test")
    }
}

/// A manager of the default namespace only, because the server creates objects in others.
pub(crate) fn manager(world: &World) -> Result<Manager> {
    Ok(Manager::new(world.kube.clone(), options().namespaces(["default"]))?)
}

/// Notes of a test, with their times.
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

    /// The notes since the last call.
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

    /// When a note was recorded.
    pub(crate) fn times(&self, note: &str) -> Vec<Duration> {
        let notes = self.notes.lock().unwrap();
        notes.iter().filter(|(_, it)| it == note).map(|(at, _)| *at).collect()
    }

    /// The intervals between equal notes, in milliseconds.
    pub(crate) fn pauses(&self, note: &str) -> Vec<u128> {
        self.times(note).windows(2).map(|pair| pair[1].saturating_sub(pair[0]).as_millis()).collect()
    }
}

type Act<K> = dyn for<'a> Fn(Option<Arc<K>>, &'a Context) -> BoxFuture<'a, kubewright_runtime::Result<Outcome>>
    + Send
    + Sync;

/// A reconciler defined by a closure. The object is `None` when it was deleted.
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

    /// Records `name`, or `name gone`.
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

/// A reconciler of keys, defined by a closure.
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

/// A value of the metrics, by name and labels.
pub(crate) fn metric(manager: &Manager, name: &str) -> Option<f64> {
    value(&manager.metrics().page(None).1, name)
}

/// A value of a metrics page, by name and labels.
pub(crate) fn value(page: &str, name: &str) -> Option<f64> {
    let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
    line.parse().ok()
}

/// Applies a merge patch to an object in the default namespace.
pub(crate) async fn patch<K>(world: &World, name: &str, patch: Value) -> Result<K>
where
    K: Object + Resource<DynamicType = (), Scope = NamespaceResourceScope> + std::fmt::Debug,
{
    let api: Api<K> = world.api();
    Ok(api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?)
}

/// Changes an annotation of an object, which does not change its generation.
pub(crate) async fn touch<K>(world: &World, name: &str, value: &str) -> Result<K>
where
    K: Object + Resource<DynamicType = (), Scope = NamespaceResourceScope> + std::fmt::Debug,
{
    patch(world, name, json!({"metadata": {"annotations": {"touched": value}}})).await
}

/// An owner reference.
pub(crate) fn owner<K: Resource<DynamicType = ()>>(owner: &K, controller: bool) -> OwnerReference {
    let mut reference = owner.owner_ref(&()).expect("an object that is stored has a name and a uid");
    reference.controller = controller.then_some(true);
    reference
}

/// Captures the log of this thread.
pub(crate) struct Log {
    lines: Lines,
    _set: tracing::subscriber::DefaultGuard,
}

impl Log {
    /// Captures all log lines from now on.
    pub(crate) fn keep() -> Result<Self> {
        Self::keep_from("debug")
    }

    /// Captures log lines of this level and above.
    pub(crate) fn keep_from(level: &str) -> Result<Self> {
        let lines = Lines::default();
        let options =
            logs::Options { format: Format::Text, level: Some(level.to_owned()), color: logs::Color::Never };
        let set = logs::capture(&options, lines.clone())?;
        Ok(Self { lines, _set: set })
    }

    /// The lines that contain `what`.
    pub(crate) fn saying(&self, what: &str) -> Vec<String> {
        let bytes = self.lines.0.lock().unwrap().clone();
        let text = String::from_utf8(bytes).expect("the log is UTF-8");
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

/// Counts concurrent entries, and their maximum.
#[derive(Clone, Default)]
pub(crate) struct Crowd(Arc<Mutex<(usize, usize)>>);

/// One entry, until it is dropped.
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
