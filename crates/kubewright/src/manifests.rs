//! The inventory of this program: the declarations of its attributes, and what is registered with its manager.
//!
//! Converts the runtime's [`ManagerManifest`] into the [`Inventory`] that the program prints. kubewright-manifests turns
//! it into manifests.

use kubewright_manifests::declare;
use kubewright_manifests::inventory::{
    ApiServiceDeclared, ControllerDeclared, ConversionDeclared, Inventory, Resource,
};
use kubewright_runtime::internal::ManagerManifest;
use kubewright_runtime::{Kind, Scope};

/// The inventory of the program.
pub(crate) fn inventory(manifest: &ManagerManifest) -> Inventory {
    let controllers = manifest.controllers.iter().map(|controller| ControllerDeclared {
        name: controller.name.clone(),
        of: controller.kind.as_ref().map(resource).unwrap_or_default(),
        owns: controller.owns.iter().map(resource).collect(),
        // Both are cached, which needs the same permissions.
        watches: controller.watches.iter().chain(&controller.reads).map(resource).collect(),
        finalizers: controller.finalizers.clone(),
        without_status: controller.without_status,
        without_events: controller.without_events,
    });
    let conversions = manifest.conversions.iter().map(|conversion| ConversionDeclared {
        group: conversion.group.clone(),
        kind: conversion.kind.clone(),
        versions: conversion.versions.clone(),
    });
    let api_services = manifest
        .api_services
        .iter()
        .map(|api| ApiServiceDeclared { group: api.group.clone(), version: api.version.clone() });
    Inventory {
        // Flags decide at run time whether these are used, so their permissions are always declared.
        leader_election: true,
        secure_metrics: true,
        // Every manager has an event recorder. The registrations decide whether it is used.
        events: true,
        namespaces: manifest.namespaces.clone(),
        declared: declare::all(),
        controllers: controllers.collect(),
        cached: manifest.cached.iter().map(resource).collect(),
        webhooks: manifest.webhooks.clone(),
        webhook_certificates: true,
        conversions: conversions.collect(),
        api_services: api_services.collect(),
        ..Inventory::new(&manifest.name)
    }
}

fn resource(kind: &Kind) -> Resource {
    let gvk = kind.gvk();
    Resource {
        group: gvk.group.clone(),
        version: gvk.version.clone(),
        kind: gvk.kind.clone(),
        plural: kind.plural().to_owned(),
        namespaced: kind.scope() == Scope::Namespaced,
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
    use kubewright_runtime::{Context, Manager, ManagerOptions, Outcome, Reconciler};

    use super::*;

    struct Nothing;

    impl Reconciler for Nothing {
        type Object = ConfigMap;

        async fn reconcile(&self, _: &ConfigMap, _: &Context) -> kubewright_runtime::Result<Outcome> {
            Ok(Outcome::done())
        }
    }

    #[tokio::test]
    async fn a_kind_that_is_only_read_gets_the_permissions_of_a_watched_one() {
        let manager = Manager::describing(ManagerOptions::new("test"), |_| {}).unwrap();
        let controller = manager.controller(Nothing).watches::<Secret>(|_, _| Vec::new());
        controller.reads::<Namespace>().register().unwrap();
        let declared = inventory(&manager.manifest());
        let watched: Vec<&str> = declared.controllers[0].watches.iter().map(|it| &*it.plural).collect();
        assert_eq!(watched, ["secrets", "namespaces"]);
    }

    #[tokio::test]
    async fn the_inventory_includes_what_is_registered() {
        let manager = Manager::describing(ManagerOptions::new("test"), |_| {}).unwrap();
        manager.cache().index::<Secret>("owner", |_| Vec::new()).unwrap();
        manager
            .controller(Nothing)
            .finalizer("example.com/cleanup")
            .without_status()
            .without_events()
            .register()
            .unwrap();
        let declared = inventory(&manager.manifest());
        assert_eq!(declared.controllers[0].finalizers, ["example.com/cleanup"]);
        assert!(declared.controllers[0].without_status && declared.controllers[0].without_events);
        let cached: Vec<&str> = declared.cached.iter().map(|it| &*it.plural).collect();
        assert_eq!(cached, ["secrets"]);
    }
}
