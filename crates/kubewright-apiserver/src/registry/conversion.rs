//! Conversion webhooks of CustomResourceDefinitions.
//!
//! The server reads stored versions synchronously, so objects are converted in advance: the converted object
//! is cached with the stored version ([`Conversion::convert_versions`]), under the tag of the resource, which
//! changes with every relevant change of the CRD. A write is converted to the storage version before it is
//! committed.
//!
//! A long list is converted with several reviews, because bodies have a limit.
//!
//! A webhook's response must have the same objects in the same order. Of the metadata only labels and
//! annotations are taken from it.

mod managed;
mod review;

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use kubewright_apiextensions::custom;
use kubewright_apimachinery::gvk::Gvk;
use kubewright_apimachinery::json;
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::status::ApiError;
use kubewright_structured_merge::packed;
use serde_json::Value;

pub(crate) use managed::{Memo, Recorder};

use crate::encoding::response;
use crate::registry::crd_resource::CrdResource;
use crate::registry::resource::Resource;
use crate::registry::resources::Resources;
use crate::storage::StoredObject;
use crate::webhook_client::{SharedTarget, Target, WebhookClient};

/// Limits of one ConversionReview. Webhook servers and [`webhook_client`](crate::webhook_client) limit the size of a
/// body, and a converted object may be larger than the original.
const MAX_OBJECTS: usize = 500;
const MAX_BYTES: usize = 1 << 20;

/// The conversion webhook of a CRD.
#[derive(Debug)]
pub(crate) struct Converter {
    target: SharedTarget,
    /// The first of `conversionReviewVersions` that this server supports.
    review_version: Option<&'static str>,
    memo: Memo,
}

impl Converter {
    /// Compiles `spec.conversion`; `None` if its strategy is not `Webhook`.
    pub(crate) fn compile(conversion: &Value) -> Option<Self> {
        if conversion.str_at("strategy") != "Webhook" {
            return None;
        }
        let mut versions =
            conversion.list_at("webhook.conversionReviewVersions").iter().filter_map(Value::as_str);
        Some(Self {
            target: Target::compile(conversion.at("webhook.clientConfig")).map(Arc::new),
            review_version: versions
                .find_map(|version| ["v1", "v1beta1"].into_iter().find(|known| *known == version)),
            memo: Memo::default(),
        })
    }

    /// Converts objects of one version with one ConversionReview. Metadata may be packed.
    async fn convert(
        &self,
        webhooks: &WebhookClient,
        objects: &[Value],
        api_version: &str,
    ) -> Result<Vec<Value>, String> {
        let Some(first) = objects.first() else { return Ok(Vec::new()) };
        let version = self.review_version.ok_or("no supported conversion review versions")?;
        let gvk = Gvk::of(first);
        let gvk = format!("{}, Kind={}", gvk.api_version(), gvk.kind);
        let target = self.target.as_ref().map_err(Clone::clone)?;
        let uid = webhooks.new_uid();
        let request = review::request(version, &uid, objects, api_version);
        let answer = target
            .post(webhooks, Bytes::from(json::to_vec(&request)), None)
            .await
            .map_err(|why| format!("conversion webhook for {gvk} failed: {why}"))?;
        let converted = review::converted(&answer, version, &uid)
            .map_err(|why| format!("conversion webhook for {gvk} failed: {why}"))?;
        if converted.len() != objects.len() {
            return Err(format!(
                "conversion webhook for {gvk} returned {} objects, expected {}",
                converted.len(),
                objects.len()
            ));
        }
        let restore = |(original, converted)| review::restored(&gvk, original, converted, api_version);
        objects.iter().zip(converted).map(restore).collect()
    }
}

/// Objects for one ConversionReview.
#[derive(Default)]
struct Batch<'a> {
    versions: Vec<&'a StoredObject>,
    objects: Vec<Value>,
    bytes: usize,
}

impl<'a> Batch<'a> {
    fn add(&mut self, version: &'a StoredObject, object: Value) {
        self.versions.push(version);
        self.objects.push(object);
        self.bytes += version.json.len();
    }

    fn is_full(&self) -> bool {
        self.objects.len() >= MAX_OBJECTS || self.bytes >= MAX_BYTES
    }
}

/// Converts custom resources with the conversion webhooks of their CRDs.
pub(crate) struct Conversion {
    resources: Arc<Resources>,
    webhooks: Arc<WebhookClient>,
}

impl Conversion {
    pub(crate) fn new(resources: Arc<Resources>, webhooks: Arc<WebhookClient>) -> Self {
        Self { resources, webhooks }
    }

    /// Converts stored versions of a custom resource with its webhook, so that they can be read as `resource`.
    pub(crate) async fn convert_versions(
        &self,
        resource: &Resource,
        versions: &[Arc<StoredObject>],
    ) -> Result<(), ApiError> {
        let Some((custom, converter)) = with_converter(resource) else { return Ok(()) };
        // Boxed to keep the futures of requests small: most need no conversion.
        Box::pin(self.convert_pending(resource, custom, converter, versions)).await
    }

    async fn convert_pending(
        &self,
        resource: &Resource,
        custom: &CrdResource,
        converter: &Converter,
        versions: &[Arc<StoredObject>],
    ) -> Result<(), ApiError> {
        let api_version = resource.gvk().api_version();
        // Objects may be stored in several versions. A review has objects of one version.
        let mut batches: BTreeMap<String, Batch<'_>> = BTreeMap::new();
        for version in versions.iter().filter(|version| response::converted(resource, version).is_none()) {
            let mut object = version.object();
            if object.str_at("apiVersion") == api_version
                || custom::restore(&custom.validation, &mut object).is_err()
            {
                continue;
            }
            let batch = batches.entry(object.str_at("apiVersion").to_owned()).or_default();
            batch.add(version, object);
            if batch.is_full() {
                self.convert_batch(resource, custom, converter, std::mem::take(batch), &api_version).await?;
            }
        }
        for batch in batches.into_values().filter(|batch| !batch.objects.is_empty()) {
            self.convert_batch(resource, custom, converter, batch, &api_version).await?;
        }
        Ok(())
    }

    async fn convert_batch(
        &self,
        resource: &Resource,
        custom: &CrdResource,
        converter: &Converter,
        batch: Batch<'_>,
        api_version: &str,
    ) -> Result<(), ApiError> {
        let converted = self.convert_objects(custom, converter, &batch.objects, api_version).await?;
        for (version, object) in batch.versions.into_iter().zip(&converted) {
            response::keep_converted(resource, version, Bytes::from(json::to_vec(object)));
        }
        Ok(())
    }

    /// Converts an object of `resource` to the storage version if the CRD has a conversion webhook.
    pub(crate) async fn in_storage_version(
        &self,
        resource: &Resource,
        object: Value,
    ) -> Result<Value, ApiError> {
        let Some((custom, _)) = with_converter(resource) else { return Ok(object) };
        if resource.version() == custom.storage_version() {
            return Ok(object);
        }
        let api_version = custom.validation.gvk(custom.storage_version()).api_version();
        Box::pin(self.convert_custom(custom, object, &api_version)).await
    }

    /// Converts an object of the storage version to the version of `resource` if the CRD has a conversion
    /// webhook.
    pub(crate) async fn in_served_version(
        &self,
        resource: &Resource,
        object: Value,
    ) -> Result<Value, ApiError> {
        let Some((custom, _)) = with_converter(resource) else { return Ok(object) };
        let api_version = resource.gvk().api_version();
        if object.str_at("apiVersion") == api_version {
            return Ok(object);
        }
        Box::pin(self.convert_custom(custom, object, &api_version)).await
    }

    /// Converts a custom resource to another version.
    pub(crate) async fn convert_custom(
        &self,
        custom: &CrdResource,
        object: Value,
        api_version: &str,
    ) -> Result<Value, ApiError> {
        let Some(converter) = custom.converter() else { return Ok(object) };
        let mut converted = self.convert_objects(custom, converter, &[object], api_version).await?;
        Ok(converted.pop().unwrap_or_default())
    }

    async fn convert_objects(
        &self,
        custom: &CrdResource,
        converter: &Converter,
        objects: &[Value],
        api_version: &str,
    ) -> Result<Vec<Value>, ApiError> {
        let failed = |why: String| ApiError::new(500, "", why);
        // Boxed: the future of an HTTP request is large, and most writes need no conversion.
        let converted = converter.convert(&self.webhooks, objects, api_version);
        let converted = Box::pin(converted).await.map_err(failed)?;
        let coerce = |mut object: Value| {
            custom::coerce(&custom.validation, &mut object, custom::Malformed::Refuse)
                .map_err(|error| failed(error.to_string()))?;
            Ok(object)
        };
        converted.into_iter().map(coerce).collect()
    }

    /// The resource of the storage version, if the CRD has a conversion webhook and that version is served.
    pub(crate) fn storage_resource(&self, resource: &Resource) -> Option<Arc<Resource>> {
        let (custom, _) = with_converter(resource)?;
        if custom.storage_version() == resource.version() {
            return None;
        }
        self.resources.current().find(resource.group(), custom.storage_version(), resource.plural()).cloned()
    }
}

fn with_converter(resource: &Resource) -> Option<(&Arc<CrdResource>, &Converter)> {
    let custom = resource.crd()?;
    Some((custom, custom.converter()?))
}

/// The object with managedFields as JSON, as it is sent to the webhook.
fn sent(object: &Value) -> Value {
    let mut object = object.clone();
    packed::unpack(&mut object);
    object.remove_at("metadata.resourceVersion");
    object
}
