//! Tests the conversion of Order between its versions.

use anyhow::{Result, ensure};
use kube::api::{Api, DynamicObject, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{CustomResourceExt, ResourceExt};
use kubewright_envtest::{Environment, examples, objects};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use shop::api::{v1, v2};
use shop::webhooks::v1::order_conversion::conversion;

const PLURAL: &str = "orders";
const V1: &str = include_str!("../../config/samples/sales_v1_order.yaml");
const V2: &str = include_str!("../../config/samples/sales_v2_order.yaml");

#[test]
fn no_field_is_lost_in_a_round_trip() -> Result<()> {
    is_unchanged::<v1::Order>(V1)?;
    is_unchanged::<v2::Order>(V2)?;
    Ok(())
}

/// Converts the sample and random objects to every other version and back.
fn is_unchanged<K>(sample: &str) -> Result<()>
where
    K: CustomResourceExt + JsonSchema + DeserializeOwned + Serialize,
{
    let conversion = conversion();
    let mut all: Vec<K> = examples(100);
    for object in objects(sample)? {
        all.push(serde_json::from_value(serde_json::to_value(object)?)?);
    }
    ensure!(
        !all.is_empty(),
        "no example of {} was generated",
        K::crd_name()
    );
    for object in all {
        let object = serde_json::to_value(object)?;
        let version = object["apiVersion"].as_str().unwrap_or_default();
        for other in conversion.versions() {
            let converted = conversion.convert(object.clone(), other)?;
            let back = conversion.convert(converted.clone(), version)?;
            ensure!(
                back == object,
                "{version} differs after a conversion to {other}:\n{object}\n{converted}\n{back}"
            );
        }
    }
    Ok(())
}

#[tokio::test]
async fn the_api_server_converts_objects_between_the_versions() -> Result<()> {
    let env = Environment::builder()
        .crd::<v1::Order>()
        .crd::<v2::Order>()
        .start()
        .await?;
    let namespace = env.namespace().await?;
    let manager = env.manager("shop")?;
    manager.conversion(conversion())?;
    let mut running = env.run(manager);
    running.ready().await?;

    for sample in [V1, V2] {
        for object in env.apply_yaml(&namespace, sample).await? {
            is_read_in_all_versions(&env, &object).await?;
        }
    }
    Ok(running.stop().await?)
}

/// Reads a stored object in every version and writes it back unchanged. No field may be lost.
async fn is_read_in_all_versions(env: &Environment, object: &DynamicObject) -> Result<()> {
    let types = object.types.clone().unwrap_or_default();
    let api = |version: &str| -> Api<DynamicObject> {
        let (group, version) = version.split_once('/').unwrap_or_default();
        let kind = GroupVersionKind::gvk(group, version, &types.kind);
        let resource = ApiResource::from_gvk_with_plural(&kind, PLURAL);
        let namespace = object.namespace().unwrap_or_default();
        Api::namespaced_with(env.client(), &namespace, &resource)
    };
    let (name, stored) = (object.name_any(), &types.api_version);
    let before = api(stored).get(&name).await?;
    for version in conversion().versions() {
        let read = api(version).get(&name).await?;
        api(version)
            .replace(&name, &PostParams::default(), &read)
            .await?;
        let after = api(stored).get(&name).await?;
        let (before, after) = (&before.data, &after.data);
        ensure!(
            before == after,
            "{stored} differs after a write of {version}:\n{before}\n{after}"
        );
    }
    Ok(())
}
