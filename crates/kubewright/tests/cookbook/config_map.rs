//! Recipe: configuration in a ConfigMap.

use std::time::Duration;

use anyhow::Context as _;
use kubewright::controller::Watch;
use kubewright::k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kubewright::prelude::*;
use kubewright::{Cache, Client, Context, Key, ListOptions, Result};

const NAMESPACE: &str = "default";
const NAME: &str = "settings";
/// The label of preview namespaces.
const PREVIEW: &str = "preview";

/// The content of the ConfigMap `settings`.
#[derive(Debug, PartialEq)]
pub struct Settings {
    pub time_to_live: Duration,
}

impl Settings {
    /// Reads the settings. Without the ConfigMap, the defaults apply.
    async fn read(client: &Client) -> Result<Self> {
        let map = client.get_opt::<ConfigMap>(&Key::namespaced(NAMESPACE, NAME)).await?;
        let hours = map.as_ref().and_then(|map| map.data.as_ref()?.get("timeToLiveHours"));
        let hours = match hours {
            Some(hours) => {
                hours.parse().with_context(|| format!("timeToLiveHours: {hours:?} is not a number"))?
            }
            None => 24,
        };
        Ok(Self { time_to_live: Duration::from_hours(hours) })
    }
}

/// Deletes preview namespaces that are older than the configured time.
pub struct PreviewReconciler;

#[rbac(groups = "", resources = "namespaces", verbs = "delete")]
impl Reconciler for PreviewReconciler {
    type Object = Namespace;

    async fn reconcile(&self, namespace: &Namespace, cx: &Context) -> Result<Outcome> {
        if namespace.labels().get(PREVIEW).is_none_or(|preview| preview != "true") {
            return Ok(Outcome::done());
        }
        let settings = Settings::read(cx.client()).await?;
        let Some(created) = namespace.creation_timestamp() else { return Ok(Outcome::done()) };
        let age = Duration::try_from(cx.now().duration_since(created.0)).unwrap_or_default();
        match settings.time_to_live.checked_sub(age) {
            Some(left) if !left.is_zero() => Ok(Outcome::requeue_after(left)),
            _ => {
                cx.client().delete(namespace).await?;
                Ok(Outcome::done())
            }
        }
    }
}

/// A change of the settings reconciles every preview namespace.
fn all_previews(_: &ConfigMap, cache: &Cache) -> Vec<Key> {
    let previews =
        cache.list::<Namespace>(&ListOptions::all().labels(format!("{PREVIEW}=true"))).unwrap_or_default();
    previews.iter().map(|namespace| Key::of(&**namespace)).collect()
}

pub fn register(manager: &Manager) -> Result<()> {
    let settings = Watch::new().fields(format!("metadata.name={NAME},metadata.namespace={NAMESPACE}"));
    manager.controller(PreviewReconciler).watches_with(settings, all_previews).register()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use anyhow::ensure;
    use kubewright_envtest::{Environment, Mode, eventually};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_changed_setting_applies_to_existing_objects() -> Result<()> {
        let env = Environment::builder().mode(Mode::Embedded).start().await?;
        let manager = env.manager("previews")?;
        register(&manager)?;
        let running = env.run(manager);
        let preview = "{apiVersion: v1, kind: Namespace, metadata: {name: pr-7, labels: {preview: 'true'}}}";
        env.apply_yaml(NAMESPACE, preview).await?;
        let deleted = async || {
            let namespace = env.runtime_client().get_opt::<Namespace>(&Key::cluster("pr-7")).await?;
            ensure!(namespace.is_none(), "the namespace exists");
            Ok(())
        };
        assert!(eventually(Duration::from_hours(2), deleted).await.is_err(), "deleted before its time");
        let settings =
            "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {timeToLiveHours: '1'}}";
        env.apply_yaml(NAMESPACE, settings).await?;
        eventually(Duration::from_mins(1), deleted).await?;
        Ok(running.stop().await?)
    }

    #[tokio::test]
    async fn an_invalid_setting_is_an_error_that_names_it() -> Result<()> {
        let env = Environment::start().await?;
        let client = env.runtime_client();
        assert_eq!(Settings::read(client).await?, Settings { time_to_live: Duration::from_hours(24) });
        let settings =
            "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {timeToLiveHours: day}}";
        env.apply_yaml(NAMESPACE, settings).await?;
        let error = Settings::read(client).await.unwrap_err();
        assert_eq!(error.to_string(), "timeToLiveHours: \"day\" is not a number");
        Ok(())
    }
}
