//! Tests the conversion of CronJob between its versions.

use anyhow::{Result, ensure};
use kube::CustomResourceExt;
use kubewright_envtest::{examples, objects};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use cronjob::api::{v1, v2};
use cronjob::webhooks::v1::cron_job_conversion::conversion;

const V1: &str = include_str!("../../config/samples/batch_v1_cronjob.yaml");
const V2: &str = include_str!("../../config/samples/batch_v2_cronjob.yaml");

#[test]
fn no_field_is_lost_in_a_round_trip() -> Result<()> {
    is_unchanged::<v1::CronJob>(V1)?;
    is_unchanged::<v2::CronJob>(V2)?;
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
    ensure!(!all.is_empty(), "no example of {} was generated", K::crd_name());
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
