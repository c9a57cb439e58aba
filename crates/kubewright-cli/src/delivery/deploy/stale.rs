//! Removes webhooks that an earlier deployment installed and that the project no longer has.
//!
//! An apply does not delete objects, and it keeps list entries that another field manager owns as well. The API server
//! would go on calling a webhook that the operator no longer serves, and with `failurePolicy: Fail` it would reject every
//! write of the kind.
//!
//! Only webhooks that call the operator's Service are removed, and only configurations that a deployment applied.

use anyhow::{Context as _, Result};
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration, WebhookClientConfig,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, Preconditions};
use kubewright_manifests::webhook::SERVICE;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::MANAGER;
use crate::delivery::rendered::{Object, Rendered};
use crate::dev::api_error;
use crate::ui::Ui;

/// The end of the name of the operator's Deployment.
const DEPLOYMENT: &str = "controller-manager";

/// A webhook configuration of either kind.
trait Configuration: Clone + DeserializeOwned + std::fmt::Debug {
    const KIND: &'static str;

    fn metadata(&self) -> &ObjectMeta;

    /// The names of the webhooks and what they call.
    fn webhooks(&self) -> Vec<(&str, &WebhookClientConfig)>;
}

impl Configuration for MutatingWebhookConfiguration {
    const KIND: &'static str = "MutatingWebhookConfiguration";

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn webhooks(&self) -> Vec<(&str, &WebhookClientConfig)> {
        self.webhooks.iter().flatten().map(|hook| (hook.name.as_str(), &hook.client_config)).collect()
    }
}

impl Configuration for ValidatingWebhookConfiguration {
    const KIND: &'static str = "ValidatingWebhookConfiguration";

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn webhooks(&self) -> Vec<(&str, &WebhookClientConfig)> {
        self.webhooks.iter().flatten().map(|hook| (hook.name.as_str(), &hook.client_config)).collect()
    }
}

/// The operator's Service for webhooks. It may no longer be rendered.
struct Service {
    namespace: String,
    name: String,
}

impl Service {
    fn of(rendered: &Rendered) -> Option<Self> {
        let deployment = rendered.manager().ok()?;
        let prefix = deployment.name().strip_suffix(DEPLOYMENT)?;
        Some(Self { namespace: deployment.namespace()?.to_owned(), name: format!("{prefix}{SERVICE}") })
    }

    fn is_called_by(&self, config: &WebhookClientConfig) -> bool {
        let service = config.service.as_ref();
        service.is_some_and(|service| service.namespace == self.namespace && service.name == self.name)
    }
}

/// Removes stale webhooks of the configurations that are about to be applied.
pub(super) async fn remove_entries(client: &kube::Client, rendered: &Rendered) -> Result<()> {
    let Some(service) = Service::of(rendered) else { return Ok(()) };
    for object in &rendered.objects {
        if object.kind() == MutatingWebhookConfiguration::KIND {
            let api: Api<MutatingWebhookConfiguration> = Api::all(client.clone());
            remove_entries_of(&api, object, &service).await?;
        } else if object.kind() == ValidatingWebhookConfiguration::KIND {
            let api: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
            remove_entries_of(&api, object, &service).await?;
        }
    }
    Ok(())
}

async fn remove_entries_of<K: Configuration>(api: &Api<K>, wanted: &Object, service: &Service) -> Result<()> {
    let failed = || format!("cannot remove old webhooks of {}", wanted.id());
    let found = api.get_opt(wanted.name()).await.map_err(api_error).with_context(failed)?;
    let Some(found) = found else { return Ok(()) };
    let wanted_names: Vec<&str> = wanted.value()["webhooks"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|hook| hook["name"].as_str())
        .collect();
    let mut operations: Vec<Value> = found
        .webhooks()
        .iter()
        .enumerate()
        .filter(|(_, (name, config))| !wanted_names.contains(name) && service.is_called_by(config))
        .map(|(index, _)| json!({ "op": "remove", "path": format!("/webhooks/{index}") }))
        .collect();
    if operations.is_empty() {
        return Ok(());
    }
    // Each removal moves the entries after it.
    operations.reverse();
    let version = &found.metadata().resource_version;
    operations.insert(0, json!({ "op": "test", "path": "/metadata/resourceVersion", "value": version }));
    let patch = serde_json::from_value(operations.into()).context("invalid JSON patch")?;
    let parameters = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
    api.patch(wanted.name(), &parameters, &Patch::<()>::Json(patch))
        .await
        .map_err(api_error)
        .with_context(failed)?;
    Ok(())
}

/// Deletes configurations that are not rendered any more. Their last webhook was deleted.
pub(super) async fn delete_configurations(client: &kube::Client, rendered: &Rendered, ui: &Ui) -> Result<()> {
    let Some(service) = Service::of(rendered) else { return Ok(()) };
    delete_of::<MutatingWebhookConfiguration>(Api::all(client.clone()), rendered, &service, ui).await?;
    delete_of::<ValidatingWebhookConfiguration>(Api::all(client.clone()), rendered, &service, ui).await
}

async fn delete_of<K: Configuration>(
    api: Api<K>,
    rendered: &Rendered,
    service: &Service,
    ui: &Ui,
) -> Result<()> {
    let all = match api.list(&ListParams::default()).await {
        // An operator without webhooks can be deployed without permission to read them.
        Err(kube::Error::Api(status)) if status.code == 403 => return Ok(()),
        all => all.map_err(api_error).with_context(|| format!("cannot list {}s", K::KIND))?,
    };
    for found in all.items {
        let name = found.metadata().name.as_deref().unwrap_or_default();
        let webhooks = found.webhooks();
        let is_ours = !webhooks.is_empty()
            && webhooks.iter().all(|(_, config)| service.is_called_by(config))
            && is_applied(found.metadata());
        let is_rendered = rendered.of_kind(K::KIND).any(|object| object.name() == name);
        if !is_ours || is_rendered {
            continue;
        }
        let preconditions = Preconditions {
            uid: found.metadata().uid.clone(),
            resource_version: found.metadata().resource_version.clone(),
        };
        let parameters = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
        match api.delete(name, &parameters).await {
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            deleted => {
                deleted.map_err(api_error).with_context(|| format!("cannot delete {} {name}", K::KIND))?;
                let kind = K::KIND.to_lowercase();
                ui.print(format!("deleted {kind}.admissionregistration.k8s.io/{name}\n").as_bytes())?;
            }
        }
    }
    Ok(())
}

/// Whether `kubewright deploy`, `make deploy` or `kubectl apply` has applied an object.
fn is_applied(metadata: &ObjectMeta) -> bool {
    let mut entries = metadata.managed_fields.iter().flatten();
    entries
        .any(|entry| entry.manager.as_deref() == Some(MANAGER) && entry.operation.as_deref() == Some("Apply"))
}

#[cfg(test)]
mod tests {
    use clap::ColorChoice;

    use super::*;
    use crate::ui::Verbosity;

    fn quiet() -> Ui {
        Ui::new(ColorChoice::Never, Verbosity::Quiet)
    }

    fn cluster() -> kube::Client {
        let options = kubewright_apiserver::Options::default();
        kube::Client::new(kubewright_apiserver::ApiServer::new(options), "default")
    }

    /// What `kubectl kustomize config/default` prints for an operator with these validating webhooks.
    fn rendered(webhooks: &[&str]) -> Rendered {
        let mut text = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop-system}\n---\n\
             apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: shop-controller-manager\n  \
             namespace: shop-system\n  labels: {control-plane: controller-manager}\nspec:\n  \
             selector: {matchLabels: {a: b}}\n  template:\n    metadata: {labels: {a: b}}\n    \
             spec: {containers: [{name: manager, image: controller}]}\n"
            .to_owned();
        if !webhooks.is_empty() {
            text.push_str("---\n");
            text.push_str(&configuration("shop-validating", "shop-webhook-service", webhooks).to_string());
        }
        Rendered::parse(&text).unwrap()
    }

    fn configuration(name: &str, service: &str, webhooks: &[&str]) -> Value {
        let hook = |name: &&str| {
            json!({
                "name": format!("{name}.example.com"),
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "clientConfig": { "service": { "namespace": "shop-system", "name": service, "path": "/x" } },
            })
        };
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": ValidatingWebhookConfiguration::KIND,
            "metadata": { "name": name },
            "webhooks": webhooks.iter().map(hook).collect::<Vec<_>>(),
        })
    }

    fn api(client: &kube::Client) -> Api<ValidatingWebhookConfiguration> {
        Api::all(client.clone())
    }

    async fn apply_as(client: &kube::Client, manager: &str, configuration: &Value) {
        let name = configuration["metadata"]["name"].as_str().unwrap();
        let parameters = PatchParams::apply(manager).force();
        api(client).patch(name, &parameters, &Patch::Apply(configuration)).await.unwrap();
    }

    async fn installed(client: &kube::Client) -> Vec<String> {
        let all = api(client).list(&ListParams::default()).await.unwrap();
        let hooks = all
            .items
            .iter()
            .flat_map(|it| it.webhooks().into_iter().map(|(hook, _)| hook.to_owned()).collect::<Vec<_>>());
        hooks.collect()
    }

    #[tokio::test]
    async fn webhooks_that_are_no_longer_rendered_are_removed() {
        let (client, ui) = (cluster(), quiet());
        super::super::apply(&client, &rendered(&["a", "b"]), &ui).await.unwrap();
        // Another field manager owns the entries too, as a CA injector that applies them does.
        apply_as(&client, "injector", &configuration("shop-validating", "shop-webhook-service", &["a", "b"]))
            .await;

        super::super::apply(&client, &rendered(&["b", "c"]), &ui).await.unwrap();
        let mut hooks = installed(&client).await;
        hooks.sort();
        assert_eq!(hooks, ["b.example.com", "c.example.com"]);
        super::super::apply(&client, &rendered(&[]), &ui).await.unwrap();
        assert_eq!(installed(&client).await, Vec::<String>::new());
    }

    #[tokio::test]
    async fn webhooks_of_others_stay() {
        let (client, ui) = (cluster(), quiet());
        apply_as(&client, MANAGER, &configuration("other", "other-webhook-service", &["other"])).await;
        apply_as(&client, "helm", &configuration("chart", "shop-webhook-service", &["chart"])).await;
        super::super::apply(&client, &rendered(&["a"]), &ui).await.unwrap();
        super::super::apply(&client, &rendered(&[]), &ui).await.unwrap();
        assert_eq!(installed(&client).await, ["chart.example.com", "other.example.com"]);
    }
}
