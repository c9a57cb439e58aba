//! Lists and watches every kind of the cluster, and updates the state.
//!
//! Kinds are discovered at the start, when a CRD or APIService changes, and periodically. Each kind has one
//! task that lists and watches it. Failures are shown on the page and retried with backoff. Forbidden kinds
//! are skipped.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use kube::Client;
use kube::api::{DynamicObject, ListParams, WatchParams};
use kube::core::{ApiResource, Request, WatchEvent};
use kube::discovery::{Discovery, verbs};
use kubewright_page::model::objects::KindName;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::{Notify, Semaphore};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep};

use super::state::{Seen, Shared, State, now};

/// Maximum number of concurrent lists.
const LISTS: usize = 8;
/// Objects per list request.
const PAGE: u32 = 500;
/// Watch timeout in seconds.
const WATCH: u32 = 290;
/// Timeout for discovery and for one page of a list.
const PATIENCE: Duration = Duration::from_secs(30);
/// Interval of periodic discovery.
const REDISCOVER: Duration = Duration::from_secs(30);
/// Delay of discovery after a change: CRDs are applied in batches, and take a moment to be served.
const SETTLE: Duration = Duration::from_millis(200);
/// Delay of a second discovery, for slower servers.
const SETTLE_LONG: Duration = Duration::from_secs(2);
/// Retry interval for forbidden kinds.
const FORBIDDEN: Duration = Duration::from_mins(1);
const RETRY_FIRST: Duration = Duration::from_millis(250);
const RETRY_LAST: Duration = Duration::from_secs(5);

const EVENTS: &str = "events.";
/// Kinds whose changes trigger discovery.
const DEFINITIONS: &[&str] =
    &["customresourcedefinitions.apiextensions.k8s.io", "apiservices.apiregistration.k8s.io"];

/// A kind to watch.
#[derive(Clone)]
struct Kind {
    name: KindName,
    resource: ApiResource,
}

/// Watches the cluster while polled.
pub(super) async fn follow(client: Client, shared: Arc<Shared>) {
    let definitions = Arc::new(Notify::new());
    let lists = Arc::new(Semaphore::new(LISTS));
    // Dropping it aborts all tasks.
    let mut tasks = JoinSet::new();
    let mut followed: BTreeMap<String, (KindName, AbortHandle)> = BTreeMap::new();
    let mut retry = RETRY_FIRST;
    let mut soon = false;
    loop {
        match discover(&client).await {
            Err(reason) => {
                shared.update(|state| {
                    state.status.lost.insert("discovery".to_owned(), reason);
                    state.publish_status();
                });
                sleep(retry).await;
                retry = (retry * 2).min(RETRY_LAST);
                continue;
            }
            Ok(kinds) => {
                retry = RETRY_FIRST;
                followed.retain(|key, (name, task)| {
                    let keep = kinds.get(key).is_some_and(|kind| kind.name == *name);
                    if !keep {
                        task.abort();
                    }
                    keep
                });
                for (key, kind) in &kinds {
                    if !followed.contains_key(key) {
                        shared.update(|state| state.status.listing.insert(key.clone()));
                        let follower = Follower {
                            client: client.clone(),
                            shared: shared.clone(),
                            kind: kind.clone(),
                            lists: lists.clone(),
                            definitions: definitions.clone(),
                        };
                        let task = tasks.spawn(follower.run());
                        followed.insert(key.clone(), (kind.name.clone(), task));
                    }
                }
                shared.update(|state| {
                    // Also clears the discovery error, which is stored like a kind.
                    state.keep_kinds(|kind| kinds.contains_key(kind));
                    state.status.discovered = true;
                    state.status.kinds = kinds.len();
                    state.publish_status();
                });
            }
        }
        let wait = if std::mem::take(&mut soon) { SETTLE_LONG } else { REDISCOVER };
        tokio::select! {
            () = definitions.notified() => {
                soon = true;
                sleep(SETTLE).await;
            }
            () = sleep(wait) => {}
        }
        while tasks.try_join_next().is_some() {}
    }
}

/// The kinds that can be watched, each in its preferred version.
async fn discover(client: &Client) -> Result<BTreeMap<String, Kind>, String> {
    let ask = async {
        match Discovery::new(client.clone()).run_aggregated().await {
            Ok(found) => Ok(found),
            // Servers before 1.26 do not support aggregated discovery.
            Err(_) => Discovery::new(client.clone()).run().await,
        }
    };
    let found = tokio::time::timeout(PATIENCE, ask)
        .await
        .map_err(|_| "the server does not respond".to_owned())?
        .map_err(|error| reason(&error))?;
    let mut kinds = BTreeMap::new();
    for group in found.groups() {
        // A kind that is missing in the preferred version is taken from the most stable version that has it.
        for (resource, capabilities) in
            group.recommended_resources().into_iter().chain(group.resources_by_stability())
        {
            let can = |verb| capabilities.supports_operation(verb);
            // Events are served in two groups; use one.
            let again = resource.group == "events.k8s.io" && resource.plural == "events";
            if !can(verbs::LIST) || !can(verbs::WATCH) || again {
                continue;
            }
            let key = format!("{}.{}", resource.plural, resource.group);
            kinds.entry(key.clone()).or_insert_with(|| Kind {
                name: KindName {
                    key,
                    group: resource.group.clone(),
                    version: resource.version.clone(),
                    kind: resource.kind.clone(),
                },
                resource,
            });
        }
    }
    Ok(kinds)
}

/// A readable reason: the server's message, or the root cause.
fn reason(error: &kube::Error) -> String {
    if let kube::Error::Api(status) = error {
        return status.message.clone();
    }
    let mut cause: &dyn std::error::Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}

/// A page of a list.
#[derive(Deserialize)]
struct Page {
    metadata: PageMeta,
    #[serde(default)]
    items: Vec<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PageMeta {
    #[serde(default)]
    resource_version: String,
    #[serde(default, rename = "continue")]
    token: String,
}

struct Follower {
    client: Client,
    shared: Arc<Shared>,
    kind: Kind,
    lists: Arc<Semaphore>,
    definitions: Arc<Notify>,
}

impl Follower {
    async fn run(self) {
        let mut retry = RETRY_FIRST;
        loop {
            let Err(error) = self.list_and_watch(&mut retry).await;
            match &error {
                // The resource version expired: list again.
                kube::Error::Api(status) if status.code == 410 => {}
                kube::Error::Api(status)
                    if status.is_forbidden() || matches!(status.code, 401 | 403 | 405) =>
                {
                    self.settle(|state, key| {
                        state.status.forbidden.insert(key.to_owned());
                    });
                    sleep(FORBIDDEN).await;
                    continue;
                }
                kube::Error::Api(status) => {
                    self.settle(|state, key| {
                        // Not served yet, or no longer: discovery will update it.
                        if !status.is_not_found() {
                            state.status.unreadable.insert(key.to_owned(), status.message.clone());
                        }
                    });
                }
                _ => self.settle(|state, key| {
                    state.status.lost.insert(key.to_owned(), reason(&error));
                }),
            }
            sleep(retry).await;
            retry = (retry * 2).min(RETRY_LAST);
        }
    }

    /// Updates the status of this kind.
    fn settle(&self, say: impl FnOnce(&mut State, &str)) {
        let key = self.kind.name.key.as_str();
        self.shared.update(|state| {
            state.status.listing.remove(key);
            state.status.lost.remove(key);
            state.status.forbidden.remove(key);
            state.status.unreadable.remove(key);
            say(state, key);
            state.publish_status();
        });
    }

    async fn list_and_watch(&self, retry: &mut Duration) -> Result<std::convert::Infallible, kube::Error> {
        let mut version = {
            // The semaphore is never closed.
            let _turn = self.lists.acquire().await;
            self.list().await?
        };
        *retry = RETRY_FIRST;
        self.settle(|_, _| {});
        let params = WatchParams::default().timeout(WATCH);
        loop {
            let begun = Instant::now();
            let request = self.request().watch(&params, &version).map_err(kube::Error::BuildRequest)?;
            let events = self.client.request_events::<Value>(request).await?;
            let mut events = std::pin::pin!(events);
            while let Some(event) = events.next().await {
                match event? {
                    WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                        seen_version(&object, &mut version);
                        self.see(object, Seen::Watched);
                    }
                    WatchEvent::Deleted(object) => {
                        seen_version(&object, &mut version);
                        self.gone(&object);
                    }
                    WatchEvent::Bookmark(bookmark) => version = bookmark.metadata.resource_version,
                    WatchEvent::Error(status) => return Err(kube::Error::Api(status)),
                }
            }
            // Back off if the server ends watches immediately.
            if begun.elapsed() < RETRY_LAST {
                sleep(RETRY_FIRST).await;
            }
        }
    }

    async fn list(&self) -> Result<String, kube::Error> {
        let mut present = BTreeSet::new();
        let mut params = ListParams::default().limit(PAGE);
        loop {
            let request = self.request().list(&params).map_err(kube::Error::BuildRequest)?;
            let page: Page = tokio::time::timeout(PATIENCE, self.client.request(request))
                .await
                .map_err(|_| kube::Error::Service("the server does not respond".into()))??;
            for object in page.items {
                present.extend(uid(&object).map(str::to_owned));
                self.see(object, Seen::Listed);
            }
            if page.metadata.token.is_empty() {
                self.shared.update(|state| {
                    if self.is_events() {
                        state.listed_events(&present);
                    } else {
                        state.listed(&self.kind.name.key, &present);
                    }
                });
                return Ok(page.metadata.resource_version);
            }
            params = params.continue_token(&page.metadata.token);
        }
    }

    fn see(&self, mut object: Value, seen: Seen) {
        if self.is_events() {
            return self.shared.update(|state| state.see_event(&object));
        }
        // List items have no apiVersion and kind.
        if let Some(fields) = object.as_object_mut() {
            fields.insert("apiVersion".to_owned(), self.kind.resource.api_version.clone().into());
            fields.insert("kind".to_owned(), self.kind.resource.kind.clone().into());
        }
        self.shared.update(|state| state.see(&self.kind.name, object, now(), seen));
        self.notify_definitions();
    }

    fn gone(&self, object: &Value) {
        let Some(uid) = uid(object) else { return };
        self.shared.update(|state| if self.is_events() { state.gone_event(uid) } else { state.gone(uid) });
        self.notify_definitions();
    }

    fn notify_definitions(&self) {
        if DEFINITIONS.contains(&self.kind.name.key.as_str()) {
            self.definitions.notify_one();
        }
    }

    fn is_events(&self) -> bool {
        self.kind.name.key == EVENTS
    }

    fn request(&self) -> Request {
        use kube::Resource as _;
        Request::new(DynamicObject::url_path(&self.kind.resource, None))
    }
}

fn uid(object: &Value) -> Option<&str> {
    object.pointer("/metadata/uid")?.as_str()
}

fn seen_version(object: &Value, version: &mut String) {
    if let Some(seen) = object.pointer("/metadata/resourceVersion").and_then(Value::as_str) {
        seen.clone_into(version);
    }
}
