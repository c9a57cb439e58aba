//! Metadata rules that differ between kinds.

use std::net::IpAddr;

use crate::names;

/// The format of object names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NameRule {
    /// A DNS-1123 subdomain.
    DnsSubdomain,
    /// A DNS-1123 label.
    DnsLabel,
    /// A valid URL path segment.
    PathSegment,
    /// No restriction.
    Any,
    /// An IP address in its canonical form.
    IpAddress,
    /// The name of an APIService.
    ApiService {
        /// `version.group` of the spec.
        required: String,
    },
    /// The name of a CustomResourceDefinition.
    Definition {
        /// `plural.group` of the spec.
        required: String,
    },
}

impl NameRule {
    /// Validates a name. Returns error messages.
    pub fn check(&self, name: &str) -> Vec<String> {
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

    /// Validates a `generateName` prefix, which may end with a dash.
    pub fn check_prefix(&self, prefix: &str) -> Vec<String> {
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

/// An additional metadata validation on update.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Check {
    /// The validation of new objects.
    New,
    /// The validation of changes.
    Update,
}

/// The metadata rules of a kind.
#[derive(Debug)]
pub struct Rules {
    /// The name format, checked on create and by [`Check::New`].
    pub name: NameRule,
    /// Whether finalizers without a slash must be known ones.
    pub kube_finalizers: bool,
    /// The validations of the kind's strategy on update, in addition to the generic one.
    pub update: &'static [Check],
}

impl Rules {
    /// The rules of kinds outside kube-apiserver's own groups: CustomResourceDefinitions and custom
    /// resources.
    pub const fn generic(name: NameRule) -> Self {
        Self { name, kube_finalizers: false, update: &[Check::Update] }
    }
}
