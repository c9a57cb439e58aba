//! The prelude has no name in common with std, anyhow or kube: globs of all of them stay usable in one file.

/// Every name of the prelude, next to all names of std's common modules, anyhow and kube.
mod together {
    #![expect(
        unused_imports,
        reason = "an unused glob matters, too: its names would be ambiguous if the prelude had them"
    )]

    use std::any::*;
    use std::borrow::*;
    use std::cell::*;
    use std::collections::*;
    use std::error::*;
    use std::fmt::*;
    use std::io::prelude::*;
    use std::io::*;
    use std::iter::*;
    use std::net::*;
    use std::path::*;
    use std::pin::*;
    use std::process::*;
    use std::result::*;
    use std::sync::*;
    use std::task::*;
    use std::thread::*;
    use std::time::*;

    use anyhow::*;
    use kube::api::*;
    use kube::client::*;
    use kube::core::*;
    use kube::*;
    use kubewright::k8s_openapi::api::core::v1::ConfigMap;
    use kubewright::kube;
    use kubewright::prelude::*;

    /// An ambiguous name is an error here.
    mod names {
        use super::{
            ApplyConfiguration, CustomResource, KeyReconciler, KubeSchema, Manager, Outcome, Reconciler,
            object, rbac, webhook,
        };
    }

    pub(super) struct Maps;

    #[rbac(groups = "", resources = "configmaps", verbs = "patch")]
    impl Reconciler for Maps {
        type Object = ConfigMap;

        async fn reconcile(&self, _: &ConfigMap, _: &kubewright::Context) -> anyhow::Result<Outcome> {
            anyhow::Ok(Outcome::done())
        }
    }

    impl KeyReconciler for Maps {
        async fn reconcile(&self, _: &kubewright::Key, _: &kubewright::Context) -> anyhow::Result<Outcome> {
            anyhow::Ok(Outcome::done())
        }
    }

    pub(super) fn register(manager: &Manager) -> std::result::Result<(), kubewright::RegisterError> {
        manager.controller(Maps).register()?;
        manager.key_controller("keys", Maps).watches::<ConfigMap>(|_, _| Vec::new()).register()
    }

    /// Methods of the traits that the prelude imports without a name.
    pub(super) fn name() -> String {
        let map = object! { ConfigMap { metadata: { name: "a" } } };
        let map = map.complete().expect("the object is complete");
        format!("{} {}", map.name_any(), map.meta().name.is_some())
    }
}

/// The prelude does not shadow the usual imports of anyhow.
mod with_anyhow {
    use anyhow::{Context, Result, bail};
    use kubewright::prelude::*;

    pub(super) fn outcome(text: &str) -> Result<Outcome> {
        if text.is_empty() {
            bail!("no text");
        }
        text.parse::<i32>().context("parsing")?;
        Ok(Outcome::done())
    }
}

/// The prelude does not shadow the usual imports of kube.
mod with_kube {
    use kubewright::kube::{Api, Client, Error, Resource, ResourceExt};
    use kubewright::prelude::*;

    pub(super) async fn get(client: Client) -> Result<(String, Outcome), Error> {
        let api: Api<kubewright::k8s_openapi::api::core::v1::Namespace> = Api::all(client);
        let namespace = api.get("default").await?;
        assert!(namespace.meta().name.is_some());
        Ok((namespace.name_any(), Outcome::done()))
    }
}

#[tokio::test]
async fn the_prelude_collides_with_nothing_in_std_anyhow_or_kube() {
    use kubewright::{Manager, ManagerOptions, kube};
    use kubewright_apiserver::{ApiServer, Options};

    let client = kube::Client::new(ApiServer::new(Options::default()), "default");
    let manager = Manager::new(client.clone(), ManagerOptions::new("test")).unwrap();
    together::register(&manager).unwrap();
    assert_eq!(together::name(), "a true");
    assert!(with_anyhow::outcome("1").is_ok() && with_anyhow::outcome("").is_err());
    assert_eq!(with_kube::get(client).await.unwrap().0, "default");
}
