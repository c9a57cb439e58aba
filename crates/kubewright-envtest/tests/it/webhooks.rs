//! Webhooks of a manager are installed by the environment: they apply to writes of the test, and versions are
//! converted.

use std::path::PathBuf;

use anyhow::Result;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DynamicObject, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{CustomResource, KubeSchema};
use kubewright_envtest::{Environment, OperatorWebhooks, Running, eventually};
use kubewright_runtime::webhook::{
    AdmissionRequest, BoxError, Conversion, Defaulter, Rejection, Spoke, Validation, Validator,
};
use kubewright_runtime::webhook::{CertificateMode, WebhookOptions};
use kubewright_runtime::{Context, Key, Manager, ManagerError, ManagerOptions, Outcome, Patch, Reconciler};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

pub(crate) mod v1 {
    use super::*;

    #[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug)]
    #[kube(group = "webhooks.example.com", version = "v1", kind = "Page", namespaced)]
    pub(crate) struct PageSpec {
        pub(super) title: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub(crate) replicas: Option<i32>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub(super) footer: Option<String>,
    }
}

pub(crate) mod v2 {
    use super::*;

    #[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug)]
    #[kube(group = "webhooks.example.com", version = "v2", kind = "Page", namespaced, storage = false)]
    pub(crate) struct PageSpec {
        pub(super) heading: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub(crate) replicas: Option<i32>,
    }
}

impl Spoke for v2::Page {
    type Hub = v1::Page;

    fn to_hub(&self) -> Result<v1::Page, BoxError> {
        let v2::PageSpec { heading, replicas } = self.spec.clone();
        let spec = v1::PageSpec { title: heading, replicas, footer: None };
        Ok(v1::Page { metadata: self.metadata.clone(), spec })
    }

    fn from_hub(hub: &v1::Page) -> Result<Self, BoxError> {
        let v1::PageSpec { title, replicas, .. } = hub.spec.clone();
        Ok(Self { metadata: hub.metadata.clone(), spec: v2::PageSpec { heading: title, replicas } })
    }
}

pub(crate) struct OneReplica;

impl Defaulter for OneReplica {
    type Object = v1::Page;

    async fn default(&self, page: &mut v1::Page, _: &AdmissionRequest) -> Result<(), Rejection> {
        page.spec.replicas.get_or_insert(1);
        Ok(())
    }
}

pub(crate) struct Rules;

impl Validator for Rules {
    type Object = v1::Page;

    async fn validate_create(&self, page: &v1::Page, v: &mut Validation<'_>) -> Result<(), Rejection> {
        if page.spec.title.is_empty() {
            v.required("spec.title", "a page has a title");
        }
        let replicas = page.spec.replicas.unwrap_or_default();
        if !(1..=5).contains(&replicas) {
            v.invalid("spec.replicas", replicas, "must be between 1 and 5");
        }
        if page.spec.title == "draft" {
            v.warn("the title is still \"draft\"");
        }
        Ok(())
    }
}

/// Watches pages, so that the manager has a cache.
struct Pages;

impl Reconciler for Pages {
    type Object = v1::Page;

    async fn reconcile(&self, _: &v1::Page, _: &Context) -> kubewright_runtime::Result<Outcome> {
        Ok(Outcome::done())
    }
}

/// Sets the replicas of a page.
struct Scale(i32);

impl Reconciler for Scale {
    type Object = v1::Page;

    async fn reconcile(&self, page: &v1::Page, cx: &Context) -> kubewright_runtime::Result<Outcome> {
        cx.client().patch(page, &Patch::merge(json!({ "spec": { "replicas": self.0 } }))).await?;
        Ok(Outcome::done())
    }
}

async fn environment() -> Result<(Environment, Running, String)> {
    let env = Environment::builder().crd::<v1::Page>().crd::<v2::Page>().start().await?;
    let namespace = env.namespace().await?;
    let manager = env.manager("Pages.example")?;
    manager.controller(Pages).register()?;
    manager.defaulter(OneReplica)?;
    manager.validator(Rules)?;
    manager.conversion(Conversion::hub::<v1::Page>().spoke::<v2::Page>())?;
    let mut running = env.run(manager);
    running.ready().await?;
    Ok((env, running, namespace))
}

pub(crate) fn api(env: &Environment, namespace: &str, version: &str) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("webhooks.example.com", version, "Page");
    Api::namespaced_with(env.client(), namespace, &ApiResource::from_gvk(&kind))
}

pub(crate) fn page(version: &str, name: &str, spec: &Value) -> DynamicObject {
    let object = json!({
        "apiVersion": format!("webhooks.example.com/{version}"),
        "kind": "Page",
        "metadata": { "name": name },
        "spec": spec,
    });
    serde_json::from_value(object).expect("a valid object")
}

#[tokio::test]
async fn every_write_goes_through_the_webhooks_and_reports_all_field_errors() -> Result<()> {
    let (env, running, namespace) = environment().await?;
    let pages = api(&env, &namespace, "v1");
    let created = pages.create(&PostParams::default(), &page("v1", "a", &json!({ "title": "A" }))).await?;
    assert_eq!(created.data["spec"], json!({ "title": "A", "replicas": 1 }));

    let wrong = page("v1", "b", &json!({ "title": "", "replicas": 10 }));
    let refused = pages.create(&PostParams::default(), &wrong).await.unwrap_err();
    let kube::Error::Api(status) = refused else { panic!("{refused}") };
    assert_eq!(status.code, 422);
    assert_eq!(
        status.message,
        "admission webhook \"vpage-v1.kb.io\" denied the request: Page.webhooks.example.com \"b\" is invalid: \
         [spec.title: Required value: a page has a title, spec.replicas: Invalid value: 10: must be between 1 and 5]"
    );
    let causes: Vec<String> =
        status.details.iter().flat_map(|it| &it.causes).map(|cause| cause.field.clone()).collect();
    assert_eq!(causes, ["spec.title", "spec.replicas"]);
    Ok(running.stop().await?)
}

#[tokio::test]
async fn a_stored_version_is_served_as_another_without_losses() -> Result<()> {
    let (env, running, namespace) = environment().await?;
    let (v1, v2) = (api(&env, &namespace, "v1"), api(&env, &namespace, "v2"));
    let whole = json!({ "title": "A", "replicas": 2, "footer": "end" });
    v1.create(&PostParams::default(), &page("v1", "a", &whole)).await?;

    let mut seen = v2.get("a").await?;
    assert_eq!(seen.data["spec"], json!({ "heading": "A", "replicas": 2 }));
    seen.data["spec"]["heading"] = "B".into();
    v2.replace("a", &PostParams::default(), &seen).await?;
    let stored = v1.get("a").await?;
    assert_eq!(stored.data["spec"], json!({ "title": "B", "replicas": 2, "footer": "end" }));

    // A write in the other version is converted for the webhooks of v1.
    let wrong = page("v2", "b", &json!({ "heading": "", "replicas": 9 }));
    let refused = v2.create(&PostParams::default(), &wrong).await.unwrap_err().to_string();
    assert!(refused.contains("spec.replicas: Invalid value: 9: must be between 1 and 5"), "{refused}");
    Ok(running.stop().await?)
}

#[tokio::test]
async fn a_manager_with_webhooks_starts_under_its_generated_role() -> Result<()> {
    let (env, running, namespace) = environment().await?;
    let pages = api(&env, &namespace, "v1");
    pages.create(&PostParams::default(), &page("v1", "a", &json!({ "title": "draft" }))).await?;
    let metrics = running.metrics();
    let labels = [("webhook", "/validate-webhooks-example-com-v1-page"), ("code", "200")];
    assert_eq!(metrics.value("controller_runtime_webhook_requests_total", &labels), Some(1.0));
    assert_eq!(env.forbidden_permissions(), []);
    Ok(running.stop().await?)
}

#[tokio::test]
async fn the_writes_of_reconcile_once_go_through_the_webhooks() -> Result<()> {
    let (env, running, namespace) = environment().await?;
    let pages = api(&env, &namespace, "v1");
    pages.create(&PostParams::default(), &page("v1", "a", &json!({ "title": "A" }))).await?;
    let key = Key::namespaced(&namespace, "a");
    env.reconcile_once(&Scale(3), &key).await?;
    let refused = env.reconcile_once(&Scale(9), &key).await.unwrap_err();
    let refused = format!("{refused:?}");
    assert!(refused.contains("spec.replicas: Invalid value: 9: must be between 1 and 5"), "{refused}");
    assert_eq!(pages.get("a").await?.data["spec"]["replicas"], 3);
    Ok(running.stop().await?)
}

/// The webhooks of [`OneReplica`] and [`Rules`], as `kubewright manifests` writes them.
const MANIFESTS: &str = "
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata:
  name: mutating-webhook-configuration
webhooks:
- name: mpage.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  clientConfig:
    service: {name: webhook-service, namespace: system, path: /mutate-webhooks-example-com-v1-page}
  rules:
  - {apiGroups: [webhooks.example.com], apiVersions: [v1], operations: [CREATE], resources: [pages]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata:
  name: validating-webhook-configuration
webhooks:
- name: vpage.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  clientConfig:
    service: {name: webhook-service, namespace: system, path: /validate-webhooks-example-com-v1-page}
  rules:
  - {apiGroups: [webhooks.example.com], apiVersions: [v1], operations: [CREATE], resources: [pages]}
";

/// The conversion of config/crd: a Service calls the operator.
pub(crate) async fn convert_by_service(env: &Environment) -> Result<()> {
    let crds: Api<CustomResourceDefinition> = Api::all(env.client());
    let service = json!({ "name": "webhook-service", "namespace": "system", "path": "/convert" });
    let conversion = json!({ "spec": { "conversion": {
        "strategy": "Webhook",
        "webhook": { "clientConfig": { "service": service }, "conversionReviewVersions": ["v1"] },
    }}});
    let merge = kube::api::Patch::Merge(conversion);
    crds.patch("pages.webhooks.example.com", &PatchParams::default(), &merge).await?;
    Ok(())
}

/// An operator with the arguments of [`OperatorWebhooks::args`], as a task instead of a process.
pub(crate) struct Operator {
    pub(crate) manifests: PathBuf,
    stop: oneshot::Sender<()>,
    running: JoinHandle<Result<(), ManagerError>>,
}

impl Operator {
    pub(crate) fn start(env: &Environment, webhooks: &OperatorWebhooks) -> Result<Self> {
        let [address, folder] = webhooks.args();
        let value =
            |argument: &str| argument.split_once('=').map(|(_, value)| value.to_owned()).unwrap_or_default();
        let folder = PathBuf::from(value(&folder));
        let options = ManagerOptions {
            webhooks: WebhookOptions {
                bind_address: value(&address).parse()?,
                certificates: CertificateMode::Files {
                    certificate: folder.join("tls.crt"),
                    key: folder.join("tls.key"),
                },
                ..WebhookOptions::default()
            },
            ..ManagerOptions::new("pages")
        };
        let operator = Manager::new(env.client(), options)?;
        operator.defaulter(OneReplica)?;
        operator.validator(Rules)?;
        operator.conversion(Conversion::hub::<v1::Page>().spoke::<v2::Page>())?;
        let (stop, stopped) = oneshot::channel::<()>();
        let running = tokio::spawn(operator.run_until(async {
            let _: Result<(), _> = stopped.await;
        }));
        let manifests = folder.join("manifests.yaml");
        std::fs::write(&manifests, MANIFESTS)?;
        Ok(Self { manifests, stop, running })
    }

    pub(crate) async fn stop(self) -> Result<()> {
        drop(self.stop);
        Ok(self.running.await??)
    }
}

#[tokio::test]
async fn the_api_server_calls_the_webhooks_of_an_operator_process() -> Result<()> {
    let env = Environment::builder().crd::<v1::Page>().crd::<v2::Page>().start().await?;
    let namespace = env.namespace().await?;
    convert_by_service(&env).await?;
    let webhooks = env.operator_webhooks()?;
    let operator = Operator::start(&env, &webhooks)?;
    webhooks.install(&operator.manifests).await?;
    let pages = api(&env, &namespace, "v1");
    let wrong = page("v1", "b", &json!({ "title": "", "replicas": 10 }));
    let refused = pages.create(&PostParams::default(), &wrong).await.unwrap_err().to_string();
    assert!(refused.contains("spec.replicas: Invalid value: 10: must be between 1 and 5"), "{refused}");
    let created = pages.create(&PostParams::default(), &page("v1", "a", &json!({ "title": "A" }))).await?;
    assert_eq!(created.data["spec"]["replicas"], 1);
    let read =
        eventually(std::time::Duration::from_secs(10), async || api(&env, &namespace, "v2").get("a").await);
    assert_eq!(read.await?.data["spec"]["heading"], "A");
    operator.stop().await
}
