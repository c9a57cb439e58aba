//! What is special about the metadata of each kind: the rule of its name, and how often it is checked.
//!
//! Kinds that are not listed, custom resources among them, have DNS subdomains as names.

use std::net::IpAddr;

use serde_json::Value;

use crate::gvk::Gvk;
use crate::names;
use crate::object::Fields as _;

/// What the name of an object must look like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NameRule {
    /// A DNS-1123 subdomain.
    DnsSubdomain,
    /// A DNS-1123 label.
    DnsLabel,
    /// Whatever can stand between two slashes of a URL.
    PathSegment,
    /// Anything.
    Any,
    /// An IP address in its canonical form.
    IpAddress,
    /// Of an APIService: what it serves.
    ApiService {
        /// `version.group` of its spec.
        required: String,
    },
    /// Of a CustomResourceDefinition: what it defines.
    Definition {
        /// `plural.group` of its spec.
        required: String,
    },
}

impl NameRule {
    /// What is wrong with a name.
    pub(crate) fn check(&self, name: &str) -> Vec<String> {
        match self {
            Self::DnsSubdomain => names::dns1123_subdomain(name),
            Self::DnsLabel => names::dns1123_label(name),
            Self::PathSegment => names::path_segment_name(name),
            Self::Any => Vec::new(),
            Self::IpAddress => match name.parse::<IpAddr>() {
                Ok(ip) if ip.to_string() == name => Vec::new(),
                Ok(_) => vec!["must be a canonical format IP address".to_owned()],
                Err(_) => vec![format!("ParseAddr({}): unable to parse IP", crate::field::quote(name))],
            },
            Self::ApiService { required } => {
                let messages = names::path_segment_name(name);
                if messages.is_empty() && name != required {
                    let required = crate::field::quote(required);
                    return vec![format!("must be `spec.version+\".\"+spec.group`: {required}")];
                }
                messages
            }
            Self::Definition { required } => {
                let mut messages = names::dns1123_subdomain(name);
                if name != required {
                    messages.push("must be spec.names.plural+\".\"+spec.group".to_owned());
                }
                messages
            }
        }
    }

    /// What is wrong with the start of a name that is yet to be generated: it may end in a dash.
    pub(crate) fn check_prefix(&self, prefix: &str) -> Vec<String> {
        match self {
            Self::PathSegment => names::path_segment_prefix(prefix),
            Self::DnsSubdomain | Self::DnsLabel => self.check(&names::mask_trailing_dash(prefix)),
            Self::Definition { required } => {
                let mut messages = names::dns1123_subdomain(&names::mask_trailing_dash(prefix));
                if prefix != required {
                    messages.push("must be spec.names.plural+\".\"+spec.group".to_owned());
                }
                messages
            }
            Self::Any | Self::IpAddress | Self::ApiService { .. } => self.check(prefix),
        }
    }
}

/// One more look at metadata on update.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Check {
    /// As if the object were new.
    New,
    /// What may not change.
    Update,
}

/// What a kind makes of metadata.
#[derive(Debug)]
pub(super) struct Rules {
    /// The rule of the name, on create and in each [`Check::New`].
    pub(super) name: NameRule,
    /// Finalizers without a slash must be known ones.
    pub(super) kube_finalizers: bool,
    /// What the kind's strategy checks on update, after what is checked for all.
    pub(super) update: &'static [Check],
}

/// The rules of a kind. The object is asked only by kinds whose name follows from their spec.
pub(super) fn rules(gvk: Gvk<'_>, object: &Value) -> Rules {
    Rules {
        name: name_rule(gvk, object),
        kube_finalizers: has_kube_finalizers(gvk),
        update: update_checks(gvk),
    }
}

fn name_rule(gvk: Gvk<'_>, object: &Value) -> NameRule {
    match (gvk.group, gvk.kind) {
        ("", "Namespace" | "Service") | ("apps", "StatefulSet") => NameRule::DnsLabel,
        ("", "Event") | ("policy" | "rbac.authorization.k8s.io", _) => NameRule::PathSegment,
        ("certificates.k8s.io", "CertificateSigningRequest") => NameRule::Any,
        ("networking.k8s.io", "IPAddress") => NameRule::IpAddress,
        ("apiregistration.k8s.io", "APIService") => NameRule::ApiService {
            required: format!("{}.{}", object.str_at("spec.version"), object.str_at("spec.group")),
        },
        ("apiextensions.k8s.io", "CustomResourceDefinition") => NameRule::Definition {
            required: format!("{}.{}", object.str_at("spec.names.plural"), object.str_at("spec.group")),
        },
        _ => NameRule::DnsSubdomain,
    }
}

/// The kinds of kube-apiserver proper, but for the few that only use the generic rules.
fn has_kube_finalizers(gvk: Gvk<'_>) -> bool {
    match gvk.group {
        // Its legacy path does not look at metadata.
        "" => gvk.kind != "Event",
        "apps"
        | "autoscaling"
        | "batch"
        | "certificates.k8s.io"
        | "discovery.k8s.io"
        | "events.k8s.io"
        | "flowcontrol.apiserver.k8s.io"
        | "networking.k8s.io"
        | "rbac.authorization.k8s.io"
        | "resource.k8s.io"
        | "scheduling.k8s.io"
        | "storage.k8s.io" => true,
        _ => false,
    }
}

fn update_checks(gvk: Gvk<'_>) -> &'static [Check] {
    use Check::{New, Update};
    match (gvk.group, gvk.kind) {
        ("", "Event") | ("policy", _) => &[],
        ("", "LimitRange")
        | ("discovery.k8s.io" | "flowcontrol.apiserver.k8s.io" | "admissionregistration.k8s.io", _) => &[New],
        ("", "PersistentVolume") | ("storage.k8s.io", "VolumeAttachment" | "CSINode") => &[New, New],
        ("", "PersistentVolumeClaim") => &[New, Update, New],
        ("rbac.authorization.k8s.io", _) => &[New, New, Update],
        ("", "ConfigMap" | "Secret" | "ServiceAccount" | "Pod" | "Service" | "Endpoints")
        | ("apps", "ControllerRevision")
        | ("networking.k8s.io", "Ingress" | "IngressClass")
        | ("storage.k8s.io", "VolumeAttributesClass")
        | ("apiregistration.k8s.io", _) => &[Update, New],
        ("", "PodTemplate")
        | ("apps", "Deployment" | "StatefulSet")
        | ("batch", "CronJob")
        | ("autoscaling" | "coordination.k8s.io" | "events.k8s.io" | "scheduling.k8s.io", _)
        | ("resource.k8s.io", "ResourceSlice")
        | ("networking.k8s.io", "IPAddress" | "ServiceCIDR")
        | ("storage.k8s.io", "CSIDriver") => &[Update],
        (
            ""
            | "apps"
            | "batch"
            | "certificates.k8s.io"
            | "networking.k8s.io"
            | "node.k8s.io"
            | "resource.k8s.io"
            | "storage.k8s.io",
            _,
        ) => &[New, Update],
        // CustomResourceDefinitions and custom resources.
        _ => &[Update],
    }
}

/// What a kind's strategy for a subresource checks.
pub(super) fn subresource_checks(gvk: Gvk<'_>, subresource: &str) -> &'static [Check] {
    use Check::{New, Update};
    match (gvk.group, gvk.kind, subresource) {
        ("admissionregistration.k8s.io" | "flowcontrol.apiserver.k8s.io" | "policy", _, _)
        | ("batch", "CronJob", _) => &[],
        ("", "Pod", "resize") => &[New],
        ("", "Pod", "ephemeralcontainers") => &[Update, New],
        ("certificates.k8s.io", _, _) => &[New, Update],
        ("storage.k8s.io", "VolumeAttachment", _) => &[New, New],
        _ => &[Update],
    }
}
