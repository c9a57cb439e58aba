//! Moves the cluster's actual state toward the desired state of a Greeting.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ObjectMeta, Patch, PatchParams};
use kube::runtime::controller::Action;
use kube::runtime::{Controller, watcher};
use kube::{Client, Resource as _, ResourceExt as _};

use crate::api::Greeting;

/// Why a reconcile failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The object does not come from an API server.
    #[error("the Greeting has no uid")]
    NoUid,
    /// The ConfigMap could not be written.
    #[error("failed to apply the ConfigMap")]
    Apply(#[source] kube::Error),
}

/// What the reconciler needs.
pub struct Ctx {
    pub client: Client,
}

pub async fn reconcile(greeting: Arc<Greeting>, ctx: Arc<Ctx>) -> Result<Action, Error> {
    let maps = Api::<ConfigMap>::namespaced(ctx.client.clone(), &greeting.namespace().unwrap_or_default());
    let owner = greeting.controller_owner_ref(&()).ok_or(Error::NoUid)?;
    let map = ConfigMap {
        metadata: ObjectMeta {
            name: Some(greeting.name_any()),
            owner_references: Some(vec![owner]),
            ..ObjectMeta::default()
        },
        data: Some([("text".to_owned(), format!("Hello, {}!", greeting.spec.name))].into()),
        ..ConfigMap::default()
    };
    let apply = PatchParams::apply("greeter").force();
    maps.patch(&greeting.name_any(), &apply, &Patch::Apply(&map)).await.map_err(Error::Apply)?;
    Ok(Action::requeue(Duration::from_secs(300)))
}

pub fn error_policy(_: Arc<Greeting>, _: &Error, _: Arc<Ctx>) -> Action {
    Action::requeue(Duration::from_secs(5))
}

/// Runs until SIGTERM.
pub async fn run(client: Client) {
    Controller::new(Api::<Greeting>::all(client.clone()), watcher::Config::default())
        .owns(Api::<ConfigMap>::all(client.clone()), watcher::Config::default())
        .shutdown_on_signal()
        .run(reconcile, error_policy, Arc::new(Ctx { client }))
        .for_each(|result| async move {
            match result {
                Ok((greeting, _)) => tracing::info!("reconciled {}", greeting.name),
                Err(error) => tracing::warn!("reconcile failed: {error}"),
            }
        })
        .await;
}
