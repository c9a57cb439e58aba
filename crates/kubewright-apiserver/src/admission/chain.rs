//! The admission chain: the plugins, their order, and which of them are enabled.

use std::collections::BTreeSet;

use kubewright_apimachinery::status::ApiError;

use super::webhook::Reinvocation;
use super::{Admission, Attributes, Cluster, Notes, Operation, Plugin};

/// The enabled admission plugins: the default ones and those in `enable`, without those in `disable`.
///
/// `enable` and `disable` correspond to kube-apiserver's flags `--enable-admission-plugins` and
/// `--disable-admission-plugins`. By default `off_by_default` has ServiceAccount, because without controllers
/// no namespace gets a service account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdmissionPlugins {
    /// Names of plugins to enable.
    pub enable: Vec<String>,
    /// Names of plugins to disable.
    pub disable: Vec<String>,
    /// Names of plugins that are off unless they are in `enable`, in addition to upstream's.
    pub off_by_default: Vec<String>,
}

/// An invalid list of plugins, with the errors of kube-apiserver.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
pub enum AdmissionPluginsError {
    /// A name in `enable` that upstream does not have.
    #[error("enable-admission-plugins plugin {0:?} is unknown")]
    UnknownEnabled(String),
    /// A name in `disable` that upstream does not have.
    #[error("disable-admission-plugins plugin {0:?} is unknown")]
    UnknownDisabled(String),
    /// Names in both lists, sorted.
    #[error("[{}] in enable-admission-plugins and disable-admission-plugins overlapped", .0.join(" "))]
    Overlap(Vec<String>),
}

impl Default for AdmissionPlugins {
    fn default() -> Self {
        Self { enable: Vec::new(), disable: Vec::new(), off_by_default: vec!["ServiceAccount".to_owned()] }
    }
}

impl AdmissionPlugins {
    /// Checks `enable` and `disable`. Upstream's plugins that this server does not implement are accepted and
    /// do nothing.
    pub fn check(&self) -> Result<(), AdmissionPluginsError> {
        let unknown = |names: &[String]| {
            names.iter().find(|name| ORDER.iter().all(|(known, _)| known != name)).cloned()
        };
        if let Some(name) = unknown(&self.enable) {
            return Err(AdmissionPluginsError::UnknownEnabled(name));
        }
        if let Some(name) = unknown(&self.disable) {
            return Err(AdmissionPluginsError::UnknownDisabled(name));
        }
        let enabled: BTreeSet<&String> = self.enable.iter().collect();
        let disabled = self.disable.iter().collect();
        let both: Vec<String> = enabled.intersection(&disabled).copied().cloned().collect();
        if both.is_empty() { Ok(()) } else { Err(AdmissionPluginsError::Overlap(both)) }
    }

    fn is_on(&self, name: &str, by_default: bool) -> bool {
        let named = |names: &[String]| names.iter().any(|known| known == name);
        named(&self.enable) || by_default && !named(&self.disable) && !named(&self.off_by_default)
    }
}

const ON: bool = true;
const OFF: bool = false;

/// Upstream's plugins in upstream's order, and whether they are enabled by default.
const ORDER: &[(&str, bool)] = &[
    ("AlwaysAdmit", OFF),
    ("NamespaceAutoProvision", OFF),
    ("NamespaceLifecycle", ON),
    ("NamespaceExists", OFF),
    ("LimitPodHardAntiAffinityTopology", OFF),
    ("LimitRanger", ON),
    ("ServiceAccount", ON),
    ("NodeRestriction", OFF),
    ("TaintNodesByCondition", ON),
    ("AlwaysPullImages", OFF),
    ("ImagePolicyWebhook", OFF),
    ("PodSecurity", ON),
    ("PodNodeSelector", OFF),
    ("Priority", ON),
    ("DefaultTolerationSeconds", ON),
    ("PodTolerationRestriction", OFF),
    ("EventRateLimit", OFF),
    ("ExtendedResourceToleration", OFF),
    ("DefaultStorageClass", ON),
    ("StorageObjectInUseProtection", ON),
    ("PodGroupProtection", ON),
    ("OwnerReferencesPermissionEnforcement", OFF),
    ("PersistentVolumeClaimResize", ON),
    ("RuntimeClass", ON),
    ("CertificateApproval", ON),
    ("CertificateSigning", ON),
    ("ClusterTrustBundleAttest", ON),
    ("CertificateSubjectRestriction", ON),
    ("DefaultIngressClass", ON),
    ("DenyServiceExternalIPs", OFF),
    ("PodTopologyLabels", ON),
    ("PodGroupWorkloadExists", ON),
    ("NodeDeclaredFeatureValidator", ON),
    ("JobValidation", ON),
    ("PodResizeValidator", ON),
    ("MutatingAdmissionPolicy", ON),
    ("MutatingAdmissionWebhook", ON),
    ("ValidatingAdmissionPolicy", ON),
    ("ValidatingAdmissionWebhook", ON),
    ("ResourceQuota", ON),
    ("AlwaysDeny", OFF),
];

/// A plugin by its name, if this server implements it.
fn plugin(name: &str) -> Option<Box<dyn Plugin>> {
    Some(match name {
        "NamespaceLifecycle" => Box::new(super::namespace_lifecycle::NamespaceLifecycle),
        "LimitRanger" => Box::new(super::limit_ranger::LimitRanger),
        "ServiceAccount" => Box::new(super::service_account::ServiceAccount),
        "TaintNodesByCondition" => Box::new(super::taint_nodes_by_condition::TaintNodesByCondition),
        "PodSecurity" => Box::new(super::pod_security::PodSecurity),
        "Priority" => Box::new(super::priority::Priority),
        "DefaultTolerationSeconds" => Box::new(super::default_toleration_seconds::DefaultTolerationSeconds),
        "DefaultStorageClass" => Box::new(super::default_storage_class::DefaultStorageClass),
        "StorageObjectInUseProtection" => {
            Box::new(super::storage_object_in_use_protection::StorageObjectInUseProtection)
        }
        "OwnerReferencesPermissionEnforcement" => {
            Box::new(super::owner_references_permission_enforcement::OwnerReferencesPermissionEnforcement)
        }
        "PersistentVolumeClaimResize" => {
            Box::new(super::persistent_volume_claim_resize::PersistentVolumeClaimResize)
        }
        "RuntimeClass" => Box::new(super::runtime_class::RuntimeClass),
        "CertificateApproval" => Box::new(super::certificate_approval::CertificateApproval),
        "CertificateSigning" => Box::new(super::certificate_signing::CertificateSigning),
        "CertificateSubjectRestriction" => {
            Box::new(super::certificate_subject_restriction::CertificateSubjectRestriction)
        }
        "DefaultIngressClass" => Box::new(super::default_ingress_class::DefaultIngressClass),
        "PodTopologyLabels" => Box::new(super::pod_topology_labels::PodTopologyLabels),
        "MutatingAdmissionPolicy" => Box::new(super::mutating_admission_policy::MutatingAdmissionPolicy),
        "MutatingAdmissionWebhook" => Box::new(super::mutating_admission_webhook::MutatingAdmissionWebhook),
        "ValidatingAdmissionPolicy" => {
            Box::new(super::validating_admission_policy::ValidatingAdmissionPolicy)
        }
        "ValidatingAdmissionWebhook" => {
            Box::new(super::validating_admission_webhook::ValidatingAdmissionWebhook)
        }
        "ResourceQuota" => Box::new(super::resource_quota::ResourceQuota),
        _ => return None,
    })
}

/// The enabled plugins, in order.
pub(crate) struct Chain {
    plugins: Vec<Box<dyn Plugin>>,
}

impl Chain {
    pub(crate) fn new(plugins: &AdmissionPlugins) -> Self {
        let on = ORDER.iter().filter(|(name, by_default)| plugins.is_on(name, *by_default));
        Self { plugins: on.filter_map(|(name, _)| plugin(name)).collect() }
    }

    fn of(&self, operation: Operation) -> impl Iterator<Item = &dyn Plugin> {
        self.plugins.iter().map(|plugin| &**plugin).filter(move |plugin| plugin.handles(operation))
    }

    /// Runs the mutating phase; twice, if a webhook or policy changed the object.
    pub(crate) async fn admit(
        &self,
        cluster: &Cluster,
        attributes: &mut Attributes<'_>,
        notes: &mut Notes,
    ) -> Result<(), ApiError> {
        notes.reinvocation = Reinvocation::default();
        loop {
            for plugin in self.of(attributes.operation) {
                match plugin.admit(cluster, attributes, notes) {
                    Admission::Ready(result) => result?,
                    Admission::Pending(future) => future.await?,
                }
            }
            if !notes.reinvocation.begin_second_round() {
                break;
            }
        }
        if let Some(warning) = attributes.settle_managed_fields() {
            notes.warn(warning);
        }
        Ok(())
    }

    /// Runs the validating phase.
    pub(crate) async fn validate(
        &self,
        cluster: &Cluster,
        attributes: &Attributes<'_>,
        notes: &mut Notes,
    ) -> Result<(), ApiError> {
        for plugin in self.of(attributes.operation) {
            match plugin.validate(cluster, attributes, notes) {
                Admission::Ready(result) => result?,
                Admission::Pending(future) => future.await?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use kubewright_apimachinery::json;
    use kubewright_apimachinery::object::Fields as _;
    use serde_json::{Value, json};

    use super::*;
    use crate::ApiServer;
    use crate::authz::{Action, ActionOn};

    fn plugins(enable: &[&str], disable: &[&str]) -> AdmissionPlugins {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        AdmissionPlugins { enable: owned(enable), disable: owned(disable), ..AdmissionPlugins::default() }
    }

    fn names(enable: &[&str], disable: &[&str]) -> Vec<&'static str> {
        Chain::new(&plugins(enable, disable)).plugins.iter().map(|plugin| plugin.name()).collect()
    }

    #[test]
    fn plugins_keep_upstreams_order_and_names() {
        let on = names(&[], &[]);
        let order: Vec<usize> =
            on.iter().map(|name| ORDER.iter().position(|(known, _)| known == name).unwrap()).collect();
        assert!(order.is_sorted(), "{on:?}");
    }

    #[test]
    fn a_plugin_that_is_off_by_default_can_be_enabled() {
        assert!(!names(&[], &["Priority"]).contains(&"Priority"));
        assert!(!names(&[], &[]).contains(&"ServiceAccount"));
        assert!(names(&["ServiceAccount"], &[]).contains(&"ServiceAccount"));
        assert_eq!(plugins(&["ServiceAccount"], &[]).check(), Ok(()));
    }

    #[test]
    fn a_plugin_that_is_enabled_and_disabled_is_rejected() {
        let both = plugins(&["Priority", "NodeRestriction", "RuntimeClass"], &["RuntimeClass", "Priority"]);
        assert_eq!(
            both.check().unwrap_err().to_string(),
            "[Priority RuntimeClass] in enable-admission-plugins and disable-admission-plugins overlapped"
        );
    }

    /// Waits, then records the object and replaces it, as a webhook does.
    struct Webhook {
        seen: Mutex<Vec<Value>>,
    }

    impl Plugin for Arc<Webhook> {
        fn name(&self) -> &'static str {
            "Webhook"
        }

        fn handles(&self, _operation: Operation) -> bool {
            true
        }

        fn admit<'a>(
            &'a self,
            cluster: &'a Cluster,
            attributes: &'a mut Attributes<'_>,
            notes: &'a mut Notes,
        ) -> Admission<'a> {
            Admission::Pending(Box::pin(async move {
                tokio::task::yield_now().await;
                let on = ActionOn::Resource {
                    group: "",
                    resource: "pods",
                    namespace: attributes.namespace,
                    name: "",
                };
                self.seen.lock().unwrap().push(json!({
                    "operation": attributes.operation.as_str(),
                    "options": attributes.options.to_value(attributes.operation),
                    "user": attributes.user.name,
                    "allowed": cluster.allows(attributes.user, Action { verb: "create", on }),
                    "new": attributes.unpacked().at("data").clone(),
                    "old": attributes.unpacked_old().at("data").clone(),
                }));
                notes.warn("changed by a webhook");
                notes.audit_annotations.insert("webhook".to_owned(), cluster.now().to_string());
                if attributes.operation != Operation::Delete {
                    let mut object = attributes.unpacked();
                    object.set_at("data.webhook", "yes");
                    object.set_at("metadata.managedFields", json!([{"operation": "Nonsense"}]));
                    attributes.replace(object)?;
                }
                Ok(())
            }))
        }
    }

    async fn send(
        server: &ApiServer,
        method: &str,
        path: &str,
        body: Value,
    ) -> (http::response::Parts, Value) {
        let request = http::Request::builder().method(method).uri(path);
        let kind = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let request = request.header("content-type", kind).header("user-agent", "test");
        let body = http_body_util::Full::new(bytes::Bytes::from(json::to_vec(&body)));
        let (parts, body) = server.handle(request.body(body).unwrap()).await.into_parts();
        let bytes = http_body_util::BodyExt::collect(body).await.unwrap().to_bytes();
        (parts, serde_json::from_slice(&bytes).unwrap())
    }

    #[tokio::test]
    async fn a_plugin_may_wait_and_replace_the_object() {
        let webhook = Arc::new(Webhook { seen: Mutex::default() });
        let chain = Chain { plugins: vec![Box::new(webhook.clone())] };
        let server = ApiServer::with_admission_chain(chain);
        let path = "/api/v1/namespaces/default/configmaps";
        let object = json!({"metadata": {"name": "a"}, "data": {"key": "1"}});
        let (parts, created) =
            send(&server, "POST", &format!("{path}?fieldManager=me&dryRun=All"), object.clone()).await;
        assert_eq!(parts.status, 201, "{created}");
        send(&server, "POST", path, object).await;
        assert_eq!(created.at("data"), &json!({"key": "1", "webhook": "yes"}));
        // Invalid managedFields are reset.
        assert_eq!(created.list_at("metadata.managedFields")[0].str_at("manager"), "me");
        let warnings: Vec<&str> =
            parts.headers.get_all("warning").iter().map(|w| w.to_str().unwrap()).collect();
        assert_eq!(warnings[0], "299 - \"changed by a webhook\"");
        assert!(warnings[1].contains(".metadata.managedFields was in an invalid state after admission"));
        let (_, patched) = send(&server, "PATCH", &format!("{path}/a"), json!({"data": {"key": "2"}})).await;
        assert_eq!(patched.at("data"), &json!({"key": "2", "webhook": "yes"}));
        send(&server, "DELETE", &format!("{path}/a"), json!({"gracePeriodSeconds": 0})).await;
        let seen = webhook.seen.lock().unwrap();
        let meta = "meta.k8s.io/v1";
        assert_eq!(
            seen[0],
            json!({
                "operation": "CREATE", "user": "admin", "allowed": true, "new": {"key": "1"}, "old": null,
                "options": {"kind": "CreateOptions", "apiVersion": meta, "fieldManager": "me", "dryRun": ["All"]},
            })
        );
        assert_eq!(
            seen[2],
            json!({
                "operation": "UPDATE", "user": "admin", "allowed": true,
                "new": {"key": "2", "webhook": "yes"}, "old": {"key": "1", "webhook": "yes"},
                "options": {"kind": "UpdateOptions", "apiVersion": meta},
            })
        );
        assert_eq!(
            seen[3],
            json!({
                "operation": "DELETE", "user": "admin", "allowed": true,
                "new": null, "old": {"key": "2", "webhook": "yes"},
                "options": {"kind": "DeleteOptions", "apiVersion": meta, "gracePeriodSeconds": 0},
            })
        );
    }

    #[test]
    fn a_name_that_upstream_does_not_have_is_rejected() {
        let error =
            |enable: &[&str], disable: &[&str]| plugins(enable, disable).check().unwrap_err().to_string();
        assert_eq!(error(&["Nonsense"], &[]), "enable-admission-plugins plugin \"Nonsense\" is unknown");
        assert_eq!(error(&[], &["Nonsense"]), "disable-admission-plugins plugin \"Nonsense\" is unknown");
        assert_eq!(plugins(&["NodeRestriction"], &[]).check(), Ok(()));
    }
}
