//! Moves the cluster's actual state toward the desired state of a Bar.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::Deployment;
use kubewright::cache::Index;
use kubewright::client::ignore_not_found;
use kubewright::finalizer::{self, Event};
use kubewright::owner::is_controlled_by;
use kubewright::prelude::*;
use kubewright::{Context, Delete, Key, RegisterError, Result, terminal};

use crate::api::v1alpha1::Bar;
use crate::bar::{self, BY_DEPLOYMENT, BY_OWNER, ERR_RESOURCE_EXISTS, FINALIZER, NotOwned};
use crate::inventory::{self, Inventory, Registration};

/// Reconciles Bar objects.
pub struct BarReconciler {
    inventory: Arc<dyn Inventory>,
    deployments: Index<Deployment>,
}

/// Registers the controller with the manager.
pub fn register(manager: &Manager) -> Result<(), RegisterError> {
    register_with(manager, inventory::from_env())
}

/// Registers the controller with an inventory.
pub fn register_with(manager: &Manager, inventory: Arc<dyn Inventory>) -> Result<(), RegisterError> {
    let deployments = manager.cache().index::<Deployment>(BY_OWNER, bar::owner_uids)?;
    let bars = manager.cache().index::<Bar>(BY_DEPLOYMENT, bar::deployment_keys)?;
    manager
        .controller(BarReconciler { inventory, deployments })
        .owns::<Deployment>()
        // A Deployment of another owner: when it is deleted, the Bar can use its name.
        .watches::<Deployment>(move |deployment, _| {
            let waiting = bars.get(Key::of(deployment).as_str()).unwrap_or_default();
            waiting.iter().map(|bar| Key::of(&**bar)).collect()
        })
        .finalizer(FINALIZER)
        .register()
}

#[rbac(groups = "apps", resources = "deployments", verbs = "create, patch, delete")]
impl Reconciler for BarReconciler {
    type Object = Bar;

    async fn reconcile(&self, bar: &Bar, cx: &Context) -> Result<Outcome> {
        finalizer::run(cx.client(), bar, FINALIZER, async |event| match event {
            Event::Apply(bar) => self.apply(bar, cx).await,
            Event::Cleanup(_) => {
                self.inventory.unregister(cx.key()).await?;
                Ok(Outcome::done())
            }
        })
        .await
    }
}

impl BarReconciler {
    async fn apply(&self, bar: &Bar, cx: &Context) -> Result<Outcome> {
        let synced = self.sync(bar, cx).await;
        if let Some(status) = bar::status(bar, &synced, cx.now()) {
            cx.set_status(&status).await?;
        }
        match &synced {
            Err(error) if error.is::<NotOwned>() => {
                cx.events().warning(bar, ERR_RESOURCE_EXISTS).action("Sync").note(error.root_cause());
            }
            _ => {}
        }
        synced?;
        Ok(Outcome::done())
    }

    /// Creates or updates the Deployment, deletes the one with the previous name, and registers the Bar.
    async fn sync(&self, bar: &Bar, cx: &Context) -> Result<Deployment> {
        let client = cx.client();
        let wanted = bar::deployment(bar)?;
        let key = Key::of(&wanted);
        let deployment = match client.get_opt::<Deployment>(&key).await? {
            // A create fails if the cache does not have the Deployment yet. An apply would take over the fields of its owner.
            None => client.create(&wanted).await?,
            Some(found) if !is_controlled_by(&*found, bar) => return Err(terminal(NotOwned(key))),
            Some(_) => client.apply(&wanted).await?,
        };
        for old in self.deployments.get(&bar.uid().unwrap_or_default())? {
            if Key::of(&*old) != key {
                let uid = old.uid().unwrap_or_default();
                ignore_not_found(client.delete_with(&*old, &Delete::background().uid(uid)).await)?;
                cx.events()
                    .normal(bar, "Deleted")
                    .note(format_args!("Deleted Deployment {}", old.name_any()));
            }
        }
        let registration = Registration { deployment_name: bar.spec.deployment_name.clone() };
        self.inventory.register(cx.key(), &registration).await?;
        Ok(deployment)
    }
}
