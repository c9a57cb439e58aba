//! What may differ between kinds: the rule of the name, and how often metadata is checked.

use std::net::IpAddr;

use crate::names;

/// What the name of an object must look like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NameRule {
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

    /// What is wrong with the start of a name that is yet to be generated: it may end in a dash.
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

/// One more look at metadata on update.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Check {
    /// As if the object were new.
    New,
    /// What may not change.
    Update,
}

/// What a kind makes of metadata.
#[derive(Debug)]
pub struct Rules {
    /// The rule of the name, on create and in each [`Check::New`].
    pub name: NameRule,
    /// Finalizers without a slash must be known ones.
    pub kube_finalizers: bool,
    /// What the kind's strategy checks on update, after what is checked for all.
    pub update: &'static [Check],
}

impl Rules {
    /// The rules of a kind outside of kube-apiserver's own groups: CustomResourceDefinitions and custom resources.
    pub const fn generic(name: NameRule) -> Self {
        Self { name, kube_finalizers: false, update: &[Check::Update] }
    }
}
