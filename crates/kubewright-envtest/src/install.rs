//! Installs CRDs and fixtures.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kubewright_runtime::{Client, Gvk};

/// The field manager of installed objects.
const OWNER: &str = "kubewright-envtest";
/// How long a CRD may take until it is served.
const SERVED_WITHIN: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(20);

/// An object could not be installed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InstallError {
    /// The server rejected an object.
    #[error("failed to apply {what}")]
    Refused {
        /// The kind and name of the object.
        what: String,
        /// The cause.
        #[source]
        source: kubewright_runtime::client::Error,
    },
    /// The server rejected a CRD.
    #[error("failed to apply CRD {name}")]
    DefinitionRefused {
        /// The name of the CRD.
        name: String,
        /// The cause.
        #[source]
        source: kube::Error,
    },
    /// A CRD is not served in time.
    #[error("CRD {name} is not served after {within:?}: {why}")]
    NotServed {
        /// The name of the CRD.
        name: String,
        /// The timeout.
        within: Duration,
        /// The conditions of the CRD, or the discovery error.
        why: String,
    },
}

/// Installs CRDs and waits until they are served.
pub(crate) async fn definitions(
    client: &kube::Client,
    definitions: &[CustomResourceDefinition],
) -> Result<(), InstallError> {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    for definition in definitions {
        let name = definition.metadata.name.clone().unwrap_or_default();
        let apply = PatchParams::apply(OWNER).force();
        api.patch(&name, &apply, &Patch::Apply(definition))
            .await
            .map_err(|source| InstallError::DefinitionRefused { name, source })?;
    }
    let mapper = Client::new(client.clone());
    for definition in definitions {
        served(&mapper, &api, definition).await?;
    }
    Ok(())
}

async fn served(
    mapper: &Client,
    api: &Api<CustomResourceDefinition>,
    definition: &CustomResourceDefinition,
) -> Result<(), InstallError> {
    let spec = &definition.spec;
    for version in spec.versions.iter().filter(|version| version.served) {
        let gvk = Gvk::new(&spec.group, &version.name, &spec.names.kind);
        let started = tokio::time::Instant::now();
        while let Err(error) = mapper.kind(&gvk).await {
            if started.elapsed() > SERVED_WITHIN {
                let name = definition.metadata.name.clone().unwrap_or_default();
                let why = match api.get(&name).await {
                    Ok(now) => conditions(&now),
                    Err(_) => error.to_string(),
                };
                return Err(InstallError::NotServed { name, within: SERVED_WITHIN, why });
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
    Ok(())
}

fn conditions(definition: &CustomResourceDefinition) -> String {
    let conditions = definition.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let said: Vec<String> = conditions
        .map(|it| {
            format!("{}={} {}", it.type_, it.status, it.message.as_deref().unwrap_or_default())
                .trim()
                .to_owned()
        })
        .collect();
    if said.is_empty() { "no conditions".to_owned() } else { said.join(", ") }
}

/// Applies an object. A namespaced object without a namespace is applied to `namespace`.
pub(crate) async fn object(
    client: &Client,
    mut object: DynamicObject,
    namespace: Option<&str>,
) -> Result<DynamicObject, InstallError> {
    let types = object.types.clone().unwrap_or_default();
    let what = format!("{} {}", types.kind, object.metadata.name.as_deref().unwrap_or_default());
    let refused = |source| InstallError::Refused { what: what.clone(), source };
    let kind = client.kind(&Gvk::of(&types.api_version, &types.kind)).await.map_err(refused)?;
    if kind.scope() == kubewright_runtime::Scope::Namespaced && object.metadata.namespace.is_none() {
        object.metadata.namespace = namespace.map(str::to_owned);
    }
    let patch = kubewright_runtime::Patch::apply(&object).map_err(refused)?.force();
    client.field_owner(OWNER).patch(&object, &patch).await.map_err(refused)
}
