//! The inventory: a service outside the cluster in which every Bar is registered.
//!
//! It stands for a load balancer, a DNS zone or a database. The garbage collector cannot delete such a resource, so the
//! controllers remove the registration with a finalizer. Both calls are idempotent, because a reconcile can be repeated.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::{Method, Request, StatusCode, header};
use http_body_util::Full;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use kubewright::anyhow::{Context as _, bail};
use kubewright::{Key, Result};
use serde::{Deserialize, Serialize};

/// The environment variable with the URL of the inventory.
pub const URL_VARIABLE: &str = "INVENTORY_URL";

/// The registration of a Bar.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Registration {
    /// The name of its Deployment.
    pub deployment_name: String,
}

/// The result of a call.
pub type Answer<'a> = Pin<Box<dyn Future<Output = Result<()>> + Send + 'a>>;

/// A service in which Bars are registered.
pub trait Inventory: Send + Sync + 'static {
    /// Creates or replaces the registration of a Bar.
    fn register<'a>(&'a self, bar: &'a Key, registration: &'a Registration) -> Answer<'a>;

    /// Removes the registration of a Bar, if there is one.
    fn unregister<'a>(&'a self, bar: &'a Key) -> Answer<'a>;
}

/// The inventory at [`URL_VARIABLE`]. Without the variable, an inventory in memory, so that the operator also runs alone.
pub fn from_env() -> Arc<dyn Inventory> {
    match std::env::var(URL_VARIABLE) {
        Ok(url) if !url.is_empty() => Arc::new(HttpInventory::new(url)),
        _ => Arc::new(MemoryInventory::default()),
    }
}

/// An inventory behind HTTP: `PUT` and `DELETE` of `/bars/<namespace>/<name>`.
pub struct HttpInventory {
    url: String,
    client: Client<HttpConnector, Full<Bytes>>,
}

impl HttpInventory {
    /// Creates a client of the inventory at this URL, such as `http://inventory.example.com`. The first request connects.
    pub fn new(url: impl Into<String>) -> Self {
        let url = url.into().trim_end_matches('/').to_owned();
        Self { url, client: Client::builder(TokioExecutor::new()).build_http() }
    }

    async fn send(&self, method: Method, bar: &Key, body: Vec<u8>) -> Result<()> {
        let url = format!("{}/bars/{bar}", self.url);
        let request = Request::builder()
            .method(&method)
            .uri(&url)
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::from(body))
            .with_context(|| format!("{url} is not a valid URL; check {URL_VARIABLE}"))?;
        let answer = self.client.request(request).await.with_context(|| format!("{method} {url} failed"))?;
        match answer.status() {
            status if status.is_success() => Ok(()),
            StatusCode::NOT_FOUND if method == Method::DELETE => Ok(()),
            status => bail!("{method} {url} failed: {status}"),
        }
    }
}

impl Inventory for HttpInventory {
    fn register<'a>(&'a self, bar: &'a Key, registration: &'a Registration) -> Answer<'a> {
        Box::pin(async move { self.send(Method::PUT, bar, serde_json::to_vec(registration)?).await })
    }

    fn unregister<'a>(&'a self, bar: &'a Key) -> Answer<'a> {
        Box::pin(self.send(Method::DELETE, bar, Vec::new()))
    }
}

/// An inventory in memory. After a restart, the first reconcile of each Bar registers it again.
#[derive(Debug, Default)]
pub struct MemoryInventory {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    registrations: BTreeMap<Key, Registration>,
    is_down: bool,
}

impl MemoryInventory {
    /// The registration of a Bar.
    pub fn get(&self, bar: &Key) -> Option<Registration> {
        self.state().registrations.get(bar).cloned()
    }

    /// Makes all calls fail until it is set to false.
    pub fn set_down(&self, is_down: bool) {
        self.state().is_down = is_down;
    }

    fn change(&self, change: impl FnOnce(&mut BTreeMap<Key, Registration>)) -> Result<()> {
        let mut state = self.state();
        if state.is_down {
            bail!("the inventory is down");
        }
        change(&mut state.registrations);
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inventory for MemoryInventory {
    fn register<'a>(&'a self, bar: &'a Key, registration: &'a Registration) -> Answer<'a> {
        Box::pin(async move {
            self.change(|it| {
                it.insert(bar.clone(), registration.clone());
            })
        })
    }

    fn unregister<'a>(&'a self, bar: &'a Key) -> Answer<'a> {
        Box::pin(async move {
            self.change(|it| {
                it.remove(bar);
            })
        })
    }
}
