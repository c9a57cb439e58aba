//! Environments on a multi-threaded runtime: all their futures are `Send`.

use anyhow::Result;
use k8s_openapi::api::core::v1::ConfigMap;
use kubewright_envtest::{Environment, Mode, Permissions};
use kubewright_runtime::{Key, ListOptions};

use crate::markdown_view::MarkdownView;

#[tokio::test(flavor = "multi_thread")]
async fn environments_start_and_work_on_any_thread() -> Result<()> {
    let tasks: Vec<_> = (0..20)
        .map(|number| {
            tokio::spawn(async move {
                let env = Environment::builder().mode(Mode::Embedded).crd::<MarkdownView>().start().await?;
                let namespace = env.namespace().await?;
                let map = format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: map-{number}}}}}");
                env.apply_yaml(&namespace, &map).await?;
                env.user("user", Permissions::all()).await?;
                let maps =
                    env.runtime_client().list::<ConfigMap>(&ListOptions::namespace(&namespace)).await?;
                anyhow::Ok((number, maps.iter().map(|map| Key::of(&**map)).collect::<Vec<_>>()))
            })
        })
        .collect();
    for task in tasks {
        let (number, keys) = task.await??;
        assert_eq!(keys, [Key::namespaced("test-1", &format!("map-{number}"))]);
    }
    Ok(())
}
