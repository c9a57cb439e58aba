//! Tests of both controllers of Bars. Each test runs twice: with a manager, and by hand.
//!
//! They run on every control plane: the embedded one with its simulated cluster, or an existing cluster. Each test uses its
//! own namespace, and the operator watches only that one.

use anyhow::{Result, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use kubewright::Key;
use kubewright::prelude::*;
use kubewright_envtest::{eventually, matches_yaml};
use sample_controller::api::v1alpha1::Bar;
use sample_controller::inventory::Registration;

use crate::operator::{LIMIT, Operator, Version};

/// Runs each test with both controllers.
macro_rules! both {
    ($($name:ident),* $(,)?) => {
        mod with_a_manager {
            $(#[tokio::test]
            async fn $name() -> anyhow::Result<()> {
                super::$name(super::Version::Manager).await
            })*
        }
        mod by_hand {
            $(#[tokio::test]
            async fn $name() -> anyhow::Result<()> {
                super::$name(super::Version::ByHand).await
            })*
        }
    };
}

both!(
    a_bar_has_a_deployment_and_reports_its_status,
    a_deployment_of_another_owner_is_refused_with_an_event,
    a_deployment_with_the_previous_name_is_deleted,
    a_changed_deployment_is_reverted,
    a_bar_is_deleted_after_its_registration,
    a_failure_of_the_inventory_is_retried,
);

async fn a_bar_has_a_deployment_and_reports_its_status(version: Version) -> Result<()> {
    let operator = Operator::with_sample(version).await?;
    assert_eq!(operator.becomes("Available").await?.available_replicas, 1);
    let deployment = operator.client().get::<Deployment>(&operator.key("example-bar")).await?;
    matches_yaml(
        &*deployment,
        "
metadata: {ownerReferences: [{kind: Bar, name: bar-sample, controller: true}]}
spec:
  replicas: 1
  selector: {matchLabels: {app: nginx, controller: bar-sample}}
  template: {spec: {containers: [{name: nginx, image: 'nginx:latest'}]}}
",
    )?;

    operator.change(|bar| bar.spec.replicas = 3).await?;
    eventually(LIMIT, async || {
        let status = operator.status().await?;
        ensure!(status.available_replicas == 3, "{status:?}");
        Ok(())
    })
    .await?;
    let conditions = operator.becomes("Available").await?.conditions;
    assert_eq!(conditions.len(), 1);
    assert_eq!(conditions[0].message, "3 of 3 Pods are available");
    operator.stop().await
}

async fn a_deployment_of_another_owner_is_refused_with_an_event(version: Version) -> Result<()> {
    let operator = Operator::start(version).await?;
    let labels = std::collections::BTreeMap::from([("app", "theirs")]);
    let theirs = object! { Deployment {
        metadata: { name: "example-bar", namespace: &operator.namespace },
        spec: {
            selector: { matchLabels: &labels },
            template: {
                metadata: { labels: &labels },
                spec: { containers: [{ name: "web", image: "theirs:1" }] },
            },
        },
    } };
    let theirs = operator.client().create(&theirs).await?;
    operator.create_sample().await?;

    let message =
        format!("Deployment {} already exists and is not managed by this Bar", operator.key("example-bar"));
    let status = operator.becomes("ErrResourceExists").await?;
    assert_eq!(status.conditions[0].message, message);
    assert_eq!(operator.event("ErrResourceExists").await?, ("Warning".to_owned(), message));
    let now = operator.client().get::<Deployment>(&Key::of(&theirs)).await?;
    assert_eq!(
        (now.metadata.generation, &now.metadata.owner_references),
        (theirs.metadata.generation, &None)
    );

    // When the other Deployment is deleted, the Bar gets its own one.
    operator.client().delete(&theirs).await?;
    operator.becomes("Available").await?;
    operator.stop().await
}

async fn a_deployment_with_the_previous_name_is_deleted(version: Version) -> Result<()> {
    let operator = Operator::with_sample(version).await?;
    operator.becomes("Available").await?;
    operator.change(|bar| "renamed".clone_into(&mut bar.spec.deployment_name)).await?;
    operator.has_deployment("renamed", true).await?;
    operator.has_deployment("example-bar", false).await?;
    let deleted = ("Normal".to_owned(), "Deleted Deployment example-bar".to_owned());
    assert_eq!(operator.event("Deleted").await?, deleted);
    let key = operator.key("bar-sample");
    eventually(LIMIT, async || {
        let found = operator.inventory.get(&key);
        ensure!(found.as_ref().is_some_and(|it| it.deployment_name == "renamed"), "{found:?}");
        Ok(())
    })
    .await?;
    operator.stop().await
}

async fn a_changed_deployment_is_reverted(version: Version) -> Result<()> {
    let operator = Operator::with_sample(version).await?;
    operator.becomes("Available").await?;
    let key = operator.key("example-bar");
    let other = operator.client().field_owner("other-manager");
    other.modify::<Deployment>(&key, |it| it.spec.get_or_insert_default().replicas = Some(7)).await?;
    eventually(LIMIT, async || {
        let deployment = operator.client().get::<Deployment>(&key).await?;
        anyhow::Ok(matches_yaml(&*deployment, "{spec: {replicas: 1}}")?)
    })
    .await?;

    // A deleted Deployment is created again.
    let before = operator.client().get::<Deployment>(&key).await?;
    operator.client().delete(&*before).await?;
    eventually(LIMIT, async || {
        let now = operator.client().get::<Deployment>(&key).await?;
        ensure!(now.uid() != before.uid(), "the Deployment was not recreated");
        Ok(())
    })
    .await?;
    operator.stop().await
}

async fn a_bar_is_deleted_after_its_registration(version: Version) -> Result<()> {
    let operator = Operator::with_sample(version).await?;
    operator.becomes("Available").await?;
    let (client, key) = (operator.client(), operator.key("bar-sample"));
    let registration = Registration { deployment_name: "example-bar".to_owned() };
    assert_eq!(operator.inventory.get(&key), Some(registration));

    operator.inventory.set_down(true);
    client.delete_key::<Bar>(&key, &kubewright::Delete::new()).await?;
    let bar = client.get::<Bar>(&key).await?;
    assert!(bar.metadata.deletion_timestamp.is_some());
    assert_eq!(bar.finalizers(), ["samplecontroller.example.com/inventory"]);

    operator.inventory.set_down(false);
    eventually(LIMIT, async || {
        let left = client.get_opt::<Bar>(&key).await?;
        ensure!(left.is_none(), "{left:?}");
        Ok(())
    })
    .await?;
    assert_eq!(operator.inventory.get(&key), None);
    if operator.env.capabilities().garbage_collection {
        operator.has_deployment("example-bar", false).await?;
    }
    operator.stop().await
}

async fn a_failure_of_the_inventory_is_retried(version: Version) -> Result<()> {
    let operator = Operator::start(version).await?;
    operator.inventory.set_down(true);
    operator.create_sample().await?;
    let status = operator.becomes("Failed").await?;
    assert_eq!(status.conditions[0].message, "the inventory is down");
    operator.inventory.set_down(false);
    operator.becomes("Available").await?;
    operator.stop().await
}

#[tokio::test]
async fn an_unchanged_bar_causes_no_writes() -> Result<()> {
    let operator = Operator::with_sample(Version::Manager).await?;
    operator.becomes("Available").await?;
    let writes = || operator.env.faults().operator().count(|it| it.is_write() && it.is_of("deployments"));
    let status_writes = || operator.env.faults().operator().count(|it| it.is_write() && it.is_of("bars"));
    let runs = || operator.runs();
    let (before, before_status, ran) = (writes(), status_writes(), runs());
    operator.change(|bar| bar.labels_mut().extend([("touched".to_owned(), "true".to_owned())])).await?;
    eventually(LIMIT, async || {
        ensure!(runs() > ran, "no new reconcile");
        Ok(())
    })
    .await?;
    assert_eq!((writes(), status_writes()), (before, before_status));
    operator.stop().await
}
