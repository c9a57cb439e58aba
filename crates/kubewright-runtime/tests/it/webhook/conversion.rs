//! Lossless conversion through a hub.

use kube::CustomResource;
use kubewright_runtime::metrics::Metrics;
use kubewright_runtime::webhook::{BoxError, CONVERSION_DATA, Conversion, RegisterError, Spoke, Webhooks};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::post;

mod v1 {
    use super::{CustomResource, Deserialize, JsonSchema, Serialize};

    /// The hub: a schedule in parts, and a priority that v2 lacks.
    #[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema, Default)]
    #[kube(group = "batch.example.com", version = "v1", kind = "Backup", namespaced)]
    pub(super) struct BackupSpec {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub(super) minute: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub(super) hour: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub(super) priority: Option<i64>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub(super) volumes: Vec<Volume>,
    }

    #[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, Default)]
    pub(super) struct Volume {
        pub(super) name: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub(super) class: Option<String>,
    }
}

mod v2 {
    use super::{CustomResource, Deserialize, JsonSchema, Serialize};

    #[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema, Default)]
    #[kube(group = "batch.example.com", version = "v2", kind = "Backup", namespaced)]
    pub(super) struct BackupSpec {
        pub(super) schedule: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub(super) volumes: Vec<String>,
    }
}

impl Spoke for v2::Backup {
    type Hub = v1::Backup;

    fn to_hub(&self) -> Result<v1::Backup, BoxError> {
        let (minute, hour) = self.spec.schedule.split_once(' ').ok_or("schedule must have two parts")?;
        let part = |text: &str| (text != "*").then(|| text.to_owned());
        let volumes = self.spec.volumes.iter();
        let spec = v1::BackupSpec {
            minute: part(minute),
            hour: part(hour),
            priority: None,
            volumes: volumes.map(|name| v1::Volume { name: name.clone(), class: None }).collect(),
        };
        Ok(v1::Backup { metadata: self.metadata.clone(), spec })
    }

    fn from_hub(hub: &v1::Backup) -> Result<Self, BoxError> {
        let part = |part: &Option<String>| part.clone().unwrap_or_else(|| "*".to_owned());
        let spec = v2::BackupSpec {
            schedule: format!("{} {}", part(&hub.spec.minute), part(&hub.spec.hour)),
            volumes: hub.spec.volumes.iter().map(|volume| volume.name.clone()).collect(),
        };
        Ok(Self { metadata: hub.metadata.clone(), spec })
    }
}

const V1: &str = "batch.example.com/v1";
const V2: &str = "batch.example.com/v2";

pub(crate) fn conversion() -> Conversion {
    Conversion::hub::<v1::Backup>().spoke::<v2::Backup>()
}

fn hub() -> Value {
    json!({
        "apiVersion": V1,
        "kind": "Backup",
        "metadata": { "name": "b", "namespace": "default", "uid": "1", "managedFields": [{ "manager": "m" }] },
        "spec": { "minute": "5", "priority": 7, "volumes": [{ "name": "data", "class": "fast" }] },
    })
}

#[test]
fn fields_that_a_spoke_lacks_are_restored_after_an_edit() {
    let mut spoke = conversion().convert(hub(), V2).expect("a v2");
    assert_eq!(spoke["apiVersion"], V2);
    assert_eq!(spoke["spec"], json!({ "schedule": "5 *", "volumes": ["data"] }));
    let kept = spoke["metadata"]["annotations"][CONVERSION_DATA].as_str().expect("an annotation");
    assert!(kept.contains("\"priority\":7"), "{kept}");

    // A client that only knows v2 changes the schedule.
    spoke["spec"]["schedule"] = "5 3".into();
    let back = conversion().convert(spoke, V1).expect("a v1");
    let mut expected = hub();
    expected["spec"]["hour"] = "3".into();
    assert_eq!(back, expected);
}

#[test]
fn an_object_that_the_spoke_can_represent_has_no_annotation() {
    let mut object = hub();
    object["spec"] = json!({ "minute": "5", "hour": "3" });
    let spoke = conversion().convert(object.clone(), V2).expect("a v2");
    assert_eq!(spoke["metadata"], object["metadata"]);
    assert_eq!(conversion().convert(spoke, V1).expect("a v1"), object);
}

/// kube-apiserver converts objects without the fields that a field manager does not apply any more.
#[test]
fn objects_without_metadata_or_spec_are_converted() {
    let empty = json!({ "apiVersion": V1, "kind": "Backup" });
    let expected = json!({ "apiVersion": V2, "kind": "Backup", "metadata": {} });
    assert_eq!(conversion().convert(empty, V2).expect("a v2"), expected);
    let status =
        json!({ "apiVersion": V2, "kind": "Backup", "metadata": { "name": "a" }, "status": { "runs": 1 } });
    let converted = conversion().convert(status, V1).expect("a v1");
    assert_eq!((&converted["apiVersion"], &converted["status"]), (&json!(V1), &json!({ "runs": 1 })));
    let mut object = hub();
    object.as_object_mut().expect("an object").remove("metadata");
    assert_eq!(conversion().convert(object, V2).expect("a v2")["spec"]["schedule"], "5 *");
}

#[test]
fn metadata_is_kept() {
    let spoke = conversion().convert(hub(), V2).expect("a v2");
    for field in ["name", "namespace", "uid", "managedFields"] {
        assert_eq!(spoke["metadata"][field], hub()["metadata"][field], "{field}");
    }
}

#[tokio::test]
async fn a_review_converts_several_objects_in_order() {
    let webhooks = Webhooks::new();
    webhooks.conversion(conversion()).expect("no other conversion");
    let mut second = hub();
    second["metadata"]["name"] = "c".into();
    let review = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "ConversionReview",
        "request": { "uid": "u", "desiredAPIVersion": V2, "objects": [hub(), second] },
    });
    let (status, answer) = post(&webhooks, "/convert", &review).await;
    assert_eq!(status, 200);
    let response = &answer["response"];
    assert_eq!((&response["uid"], &response["result"]), (&json!("u"), &json!({ "status": "Success" })));
    let names: Vec<&Value> = response["convertedObjects"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|o| &o["metadata"]["name"])
        .collect();
    assert_eq!(names, ["b", "c"]);
}

#[tokio::test]
async fn one_invalid_object_fails_its_review_and_is_named() {
    let webhooks = Webhooks::new();
    webhooks.conversion(conversion()).expect("no other conversion");
    let bad = json!({
        "apiVersion": V2, "kind": "Backup", "metadata": { "name": "bad" }, "spec": { "schedule": "never" },
    });
    let ask = |object: Value, desired: &str| {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "ConversionReview",
            "request": { "uid": "u", "desiredAPIVersion": desired, "objects": [object] },
        })
    };
    let message = async |review: Value| {
        let (_, answer) = post(&webhooks, "/convert", &review).await;
        assert_eq!(answer["response"]["result"]["status"], "Failure");
        answer["response"]["result"]["message"].as_str().expect("a message").to_owned()
    };
    assert_eq!(
        message(ask(bad, V1)).await,
        "Backup \"bad\": failed to convert batch.example.com/v2, Kind=Backup: schedule must have two parts"
    );
    assert_eq!(
        message(ask(hub(), "batch.example.com/v3")).await,
        "Backup \"b\": cannot convert Backup of batch.example.com/v3: registered versions are \
         batch.example.com/v1, batch.example.com/v2"
    );
    let stranger = json!({ "apiVersion": "other/v1", "kind": "Backup", "metadata": { "name": "s" } });
    assert_eq!(message(ask(stranger, V2)).await, "no conversion is registered for Backup of group \"other\"");
}

mod v3 {
    use super::{BoxError, CustomResource, Deserialize, JsonSchema, Serialize, Spoke, v1};

    #[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema, Default)]
    #[kube(group = "batch.example.com", version = "v3", kind = "Backup", namespaced)]
    pub(super) struct BackupSpec {}

    impl Spoke for Backup {
        type Hub = v1::Backup;

        fn to_hub(&self) -> Result<v1::Backup, BoxError> {
            panic!("a bad day")
        }

        fn from_hub(_: &v1::Backup) -> Result<Self, BoxError> {
            panic!("a bad day")
        }
    }
}

#[tokio::test]
async fn a_conversion_that_panics_fails_its_review_and_is_counted() {
    let webhooks = Webhooks::new();
    let metrics = Metrics::new();
    metrics.with_registry(|registry| webhooks.register_metrics(registry));
    webhooks.conversion(conversion().spoke::<v3::Backup>()).expect("no other conversion");
    let (_, before) = metrics.page(None);
    for code in [200, 500] {
        let line =
            format!(r#"controller_runtime_webhook_requests_total{{webhook="/convert",code="{code}"}} 0"#);
        assert!(before.contains(&line), "missing {line} in\n{before}");
    }
    assert!(before.contains("controller_runtime_conversion_webhook_panics_total 0"), "{before}");

    let review = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "ConversionReview",
        "request": { "uid": "u", "desiredAPIVersion": "batch.example.com/v3", "objects": [hub()] },
    });
    let (status, answer) = post(&webhooks, "/convert", &review).await;
    assert_eq!(status, 200);
    assert_eq!(answer["response"]["result"]["message"], "panic: a bad day [recovered]");
    let (_, page) = metrics.page(None);
    assert!(page.contains("controller_runtime_conversion_webhook_panics_total 1"), "{page}");
    assert!(page.contains("controller_runtime_webhook_panics_total 0"), "{page}");
}

#[test]
fn a_kind_has_one_conversion() {
    let webhooks = Webhooks::new();
    webhooks.conversion(conversion()).expect("the first");
    assert!(matches!(webhooks.conversion(conversion()), Err(RegisterError::ConversionTaken { .. })));
    assert_eq!(webhooks.paths(), ["/convert"]);
}
