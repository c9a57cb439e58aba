//! Admission and conversion reviews in the journal, as a listener receives them.

use anyhow::Result;
use k8s_openapi::api::core::v1::ConfigMap;
use kubewright_runtime::internal::journal::{Admission, Conversion, PatchOperation, Record};
use kubewright_runtime::webhook::{
    AdmissionRequest, Defaulter, Operation, Rejection, Validation, Validator, mutate_path, validate_path,
};
use serde_json::{Value, json};

use crate::journal::{Connection, Listener};
use crate::operator::Running;
use crate::webhook::{conversion, post};
use crate::world::World;

struct Labels;

impl Defaulter for Labels {
    type Object = ConfigMap;

    async fn default(&self, object: &mut ConfigMap, _: &AdmissionRequest) -> Result<(), Rejection> {
        object.data.get_or_insert_default().insert("size".into(), "large".into());
        Ok(())
    }
}

struct Small;

impl Validator for Small {
    type Object = ConfigMap;

    async fn validate_create(&self, new: &ConfigMap, v: &mut Validation<'_>) -> Result<(), Rejection> {
        v.warn("sizes will be removed");
        if new.data.as_ref().is_some_and(|data| data.contains_key("size")) {
            v.required("data[owner]", "large ConfigMaps need an owner");
        }
        if new.metadata.name.as_deref() == Some("slow") {
            std::future::pending::<()>().await;
        }
        Ok(())
    }
}

fn review(name: &str) -> Value {
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "1", "operation": "CREATE", "namespace": "default", "name": name,
            "kind": { "group": "", "version": "v1", "kind": "ConfigMap" },
            "userInfo": { "username": "alice" },
            "object": { "metadata": { "name": name, "namespace": "default" }, "data": { "size": "small" } },
        },
    })
}

async fn admission(connection: &mut Connection) -> Result<Admission> {
    connection.find(|record| if let Record::Admission(it) = record { Some(it) } else { None }).await
}

#[tokio::test]
async fn an_admission_record_has_webhook_object_verdict_and_patch() -> Result<()> {
    let world = World::new();
    let listener = Listener::bind().await?;
    let manager = listener.manager(&world)?;
    manager.defaulter(Labels)?;
    manager.validator(Small)?;
    let running = Running::start(&manager);
    let mut connection = listener.accept().await?;

    post(manager.webhooks(), &mutate_path::<ConfigMap>(), &review("a")).await;
    let defaulted = admission(&mut connection).await?;
    assert_eq!(defaulted.webhook, "mconfigmap-v1.kb.io");
    assert_eq!((defaulted.operation, defaulted.allowed), (Operation::Create, true));
    assert_eq!(
        (
            defaulted.kind.as_str(),
            defaulted.namespace.as_str(),
            defaulted.name.as_str(),
            defaulted.user.as_str()
        ),
        ("ConfigMap", "default", "a", "alice")
    );
    let operation = PatchOperation {
        op: "replace".to_owned(),
        path: "/data/size".to_owned(),
        value: Some("large".into()),
        before: Some("small".into()),
    };
    assert_eq!((defaulted.patch, defaulted.more_patches), (vec![operation], 0));

    post(manager.webhooks(), &validate_path::<ConfigMap>(), &review("a")).await;
    let denied = admission(&mut connection).await?;
    assert_eq!(
        (denied.webhook.as_str(), denied.allowed, denied.code),
        ("vconfigmap-v1.kb.io", false, Some(422))
    );
    assert_eq!(denied.warnings, ["sizes will be removed"]);
    let message = denied.message.unwrap_or_default();
    assert!(message.contains("data[owner]: Required value: large ConfigMaps need an owner"), "{message}");

    // A review without a response is recorded as well.
    let path = format!("{}?timeout=10ms", validate_path::<ConfigMap>());
    let (status, _) = post(manager.webhooks(), &path, &review("slow")).await;
    assert_eq!(status, 504);
    let late = admission(&mut connection).await?;
    assert_eq!((late.name.as_str(), late.allowed), ("slow", false));
    assert!(late.message.is_some_and(|message| message.starts_with("no response")));
    running.end().await
}

#[tokio::test]
async fn a_conversion_record_has_versions_objects_and_errors() -> Result<()> {
    let world = World::new();
    let listener = Listener::bind().await?;
    let manager = listener.manager(&world)?;
    manager.conversion(conversion::conversion())?;
    let running = Running::start(&manager);
    let mut connection = listener.accept().await?;
    let object = |schedule: &str| {
        json!({
            "apiVersion": "batch.example.com/v2", "kind": "Backup",
            "metadata": { "name": "nightly", "namespace": "default" },
            "spec": { "schedule": schedule, "volumes": [] },
        })
    };
    let review = |schedule: &str| {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
            "request": { "uid": "1", "desiredAPIVersion": "batch.example.com/v1", "objects": [object(schedule)] },
        })
    };
    let mut errors = Vec::new();
    for schedule in ["5 *", "never"] {
        post(manager.webhooks(), "/convert", &review(schedule)).await;
        let it: Conversion = connection
            .find(|record| if let Record::Conversion(it) = record { Some(it) } else { None })
            .await?;
        assert_eq!((it.kind.as_str(), it.group.as_str(), it.objects), ("Backup", "batch.example.com", 1));
        assert_eq!(
            (it.from, it.to),
            (vec!["batch.example.com/v2".to_owned()], "batch.example.com/v1".to_owned())
        );
        assert_eq!(it.names, ["default/nightly"]);
        errors.extend(it.error);
    }
    assert!(errors.len() == 1 && errors[0].contains("schedule must have two parts"), "{errors:?}");
    running.end().await
}
