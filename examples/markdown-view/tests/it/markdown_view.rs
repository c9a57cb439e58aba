//! Tests of the MarkdownView controller.
//!
//! They run on every control plane: the embedded one with its simulated cluster, or an existing cluster. Each
//! test uses its own namespace, and its manager watches only that one.

use std::time::Duration;

use anyhow::{Result, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kubewright::condition::{is_false, is_true};
use kubewright::prelude::*;
use kubewright::{Key, ListOptions, ManagerOptions, Object, Patch};
use kubewright_envtest::{Environment, Running, consistently, eventually, matches_yaml};
use markdown_view::api::v1::MarkdownView;
use markdown_view::controllers;

/// A real cluster may have to pull the image.
const LIMIT: Duration = Duration::from_mins(1);
const SAMPLE: &str = include_str!("../../config/samples/view_v1_markdownview.yaml");

/// A control plane with the running operator and the sample.
struct Operator {
    running: Running,
    namespace: String,
    env: Environment,
}

/// Starts the operator and creates the sample.
async fn operator() -> Result<Operator> {
    let env = Environment::builder().crd::<MarkdownView>().with_cluster().start().await?;
    let namespace = env.namespace().await?;
    let manager = env.manager_with(ManagerOptions::new("markdown-view").namespaces([&namespace]))?;
    controllers::markdown_view::register(&manager)?;
    let running = env.run(manager);
    env.apply_yaml(&namespace, SAMPLE).await?;
    Ok(Operator { running, namespace, env })
}

impl Operator {
    fn key(&self, name: &str) -> Key {
        Key::namespaced(&self.namespace, name)
    }

    /// Waits until an object exists and matches `yaml`.
    async fn sees<K: Object>(&self, name: &str, yaml: &str) -> Result<()> {
        eventually(LIMIT, async || {
            let object = self.env.runtime_client().get::<K>(&self.key(name)).await?;
            anyhow::Ok(matches_yaml(&*object, yaml)?)
        })
        .await?;
        Ok(())
    }

    async fn change(&self, change: impl Fn(&mut MarkdownView)) -> Result<()> {
        self.env.runtime_client().modify(&self.key("markdownview-sample"), change).await?;
        Ok(())
    }

    async fn conditions(&self) -> Result<Vec<Condition>> {
        let view = self.env.runtime_client().get::<MarkdownView>(&self.key("markdownview-sample")).await?;
        Ok(view.status.clone().unwrap_or_default().conditions)
    }

    async fn becomes_available(&self) -> Result<()> {
        eventually(LIMIT, async || {
            let conditions = self.conditions().await?;
            ensure!(is_true(&conditions, "Available") && is_false(&conditions, "Degraded"), "{conditions:?}");
            Ok(())
        })
        .await?;
        Ok(())
    }

    /// The value of the sample's gauge.
    fn gauge(&self) -> Option<f64> {
        let labels = [("name", "markdownview-sample"), ("namespace", self.namespace.as_str())];
        self.running.metrics().value("markdownview_available", &labels)
    }

    /// The number of reconciles.
    fn runs(&self) -> f64 {
        let labels = [("controller", "markdownview")];
        self.running.metrics().value("controller_runtime_reconcile_total", &labels).unwrap_or(0.0)
    }

    /// Events about the sample.
    async fn events(&self) -> Result<Vec<std::sync::Arc<Event>>> {
        let mut events =
            self.env.runtime_client().list::<Event>(&ListOptions::namespace(&self.namespace)).await?;
        events.retain(|event| {
            event.regarding.as_ref().is_some_and(|about| about.kind.as_deref() == Some("MarkdownView"))
        });
        Ok(events)
    }

    async fn stop(self) -> Result<()> {
        Ok(self.running.stop().await?)
    }
}

#[tokio::test]
async fn a_view_has_a_config_map_with_its_pages() -> Result<()> {
    let operator = operator().await?;
    let owned =
        "metadata: {ownerReferences: [{kind: MarkdownView, name: markdownview-sample, controller: true}]}";
    operator.sees::<ConfigMap>("markdowns-markdownview-sample", owned).await?;
    let pages = r##"{data: {SUMMARY.md: "# Summary\n\n- [Page1](page1.md)\n"}}"##;
    operator.sees::<ConfigMap>("markdowns-markdownview-sample", pages).await?;

    // Pages removed from the view are removed; keys of other field managers stay.
    let client = operator.env.runtime_client();
    let map = client.get::<ConfigMap>(&operator.key("markdowns-markdownview-sample")).await?;
    let others = Patch::merge(serde_json::json!({ "data": { "theirs.md": "Not ours" } }));
    client.field_owner("other-manager").patch(&*map, &others).await?;
    operator
        .change(|view| {
            view.spec.markdowns.remove("page1.md");
            view.spec.markdowns.insert("page2.md".to_owned(), "# Page 2".to_owned());
        })
        .await?;
    eventually(LIMIT, async || {
        let map = client.get::<ConfigMap>(&operator.key("markdowns-markdownview-sample")).await?;
        let files: Vec<&String> = map.data.iter().flatten().map(|(file, _)| file).collect();
        ensure!(files == ["SUMMARY.md", "page2.md", "theirs.md"], "{files:?}");
        Ok(())
    })
    .await?;
    operator.stop().await
}

#[tokio::test]
async fn a_view_has_a_deployment_of_its_viewers() -> Result<()> {
    let operator = operator().await?;
    let deployment = "
metadata: {ownerReferences: [{kind: MarkdownView, controller: true}]}
spec:
  replicas: 1
  template:
    spec:
      containers: [{name: mdbook, image: 'peaceiris/mdbook:latest', ports: [{containerPort: 3000}]}]
      volumes: [{name: markdowns, configMap: {name: markdowns-markdownview-sample}}]
";
    operator.sees::<Deployment>("viewer-markdownview-sample", deployment).await?;
    operator.change(|view| view.spec.replicas = 3).await?;
    operator.sees::<Deployment>("viewer-markdownview-sample", "{spec: {replicas: 3}}").await?;

    // Changes by another field manager are reverted.
    let client = operator.env.runtime_client().field_owner("other-manager");
    client
        .modify::<Deployment>(&operator.key("viewer-markdownview-sample"), |it| {
            it.spec.get_or_insert_default().replicas = Some(7);
        })
        .await?;
    operator.sees::<Deployment>("viewer-markdownview-sample", "{spec: {replicas: 3}}").await?;
    operator.stop().await
}

#[tokio::test]
async fn a_view_has_a_service_in_front_of_its_viewers() -> Result<()> {
    let operator = operator().await?;
    let service = "
metadata: {ownerReferences: [{kind: MarkdownView, controller: true}]}
spec:
  type: ClusterIP
  selector: {app.kubernetes.io/name: mdbook, app.kubernetes.io/instance: markdownview-sample}
  ports: [{protocol: TCP, port: 80, targetPort: http}]
";
    operator.sees::<Service>("viewer-markdownview-sample", service).await?;
    // A deleted Service is created again.
    let client = operator.env.runtime_client();
    let before = client.get::<Service>(&operator.key("viewer-markdownview-sample")).await?;
    client.delete(&*before).await?;
    eventually(LIMIT, async || {
        let now = client.get::<Service>(&operator.key("viewer-markdownview-sample")).await?;
        ensure!(now.uid() != before.uid(), "the Service was not recreated");
        Ok(())
    })
    .await?;
    operator.stop().await
}

#[tokio::test]
async fn a_view_becomes_available_and_emits_one_event() -> Result<()> {
    let operator = operator().await?;
    operator.becomes_available().await?;
    eventually(LIMIT, async || {
        ensure!(operator.gauge() == Some(1.0), "{:?}", operator.gauge());
        let events = operator.events().await?;
        ensure!(events.len() == 1 && events[0].reason.as_deref() == Some("Available"), "{events:?}");
        Ok(())
    })
    .await?;
    let message = "1 of 1 viewers are available";
    assert!(operator.conditions().await?.iter().all(|condition| condition.message == message));

    // Available stays true with one of two viewers, so this is not a transition.
    operator.change(|view| view.spec.replicas = 2).await?;
    eventually(LIMIT, async || {
        let conditions = operator.conditions().await?;
        ensure!(conditions.iter().all(|it| it.message == "2 of 2 viewers are available"), "{conditions:?}");
        Ok(())
    })
    .await?;
    assert!(is_true(&operator.conditions().await?, "Available"));
    assert_eq!(operator.events().await?.len(), 1);
    operator.stop().await
}

#[tokio::test]
async fn the_generated_role_has_exactly_the_needed_permissions() -> Result<()> {
    let operator = operator().await?;
    operator.becomes_available().await?;
    if operator.env.capabilities().generated_role {
        let request = operator.env.faults().operator().requests();
        assert!(request.iter().all(|it| it.user.starts_with("system:serviceaccount:")), "{request:?}");
        assert_eq!(operator.env.forbidden_permissions(), []);
        assert_eq!(operator.env.unused_permissions(), []);
    }
    operator.stop().await
}

#[tokio::test]
async fn an_unchanged_view_causes_no_writes() -> Result<()> {
    let operator = operator().await?;
    operator.becomes_available().await?;
    let writes = || {
        let children = ["configmaps", "deployments", "services"];
        let of_children =
            |it: &kubewright_envtest::RecordedRequest| children.iter().any(|kind| it.is_of(kind));
        operator.env.faults().count(|request| request.is_write() && of_children(request))
    };
    // One write per object, regardless of the number of Deployment status updates.
    let (runs, before) = (operator.runs(), writes());
    assert_eq!(before, 3);
    operator.change(|view| view.labels_mut().extend([("touched".to_owned(), "true".to_owned())])).await?;
    eventually(LIMIT, async || {
        ensure!(operator.runs() > runs, "no new reconcile");
        Ok(())
    })
    .await?;
    let unchanged = async || {
        ensure!(writes() == before, "{} writes", writes() - before);
        Ok(())
    };
    consistently(Duration::from_millis(200), unchanged).await?;
    operator.stop().await
}

#[tokio::test]
async fn deleting_a_view_removes_its_objects_and_its_gauge() -> Result<()> {
    let operator = operator().await?;
    operator.becomes_available().await?;
    let client = operator.env.runtime_client();
    client
        .delete_key::<MarkdownView>(&operator.key("markdownview-sample"), &kubewright::Delete::new())
        .await?;
    eventually(LIMIT, async || {
        ensure!(operator.gauge().is_none(), "{:?}", operator.gauge());
        Ok(())
    })
    .await?;
    if operator.env.capabilities().garbage_collection {
        eventually(LIMIT, async || {
            let left = client.get_opt::<Deployment>(&operator.key("viewer-markdownview-sample")).await?;
            ensure!(left.is_none(), "the Deployment still exists");
            let left = client.get_opt::<ConfigMap>(&operator.key("markdowns-markdownview-sample")).await?;
            ensure!(left.is_none(), "the ConfigMap still exists");
            Ok(())
        })
        .await?;
    }
    operator.stop().await
}
