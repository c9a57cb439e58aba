//! An operation, independent of OpenAPI v2 and v3.
//!
//! A route corresponds to a go-restful route upstream: path, request and responses. [`super::v2`] and
//! [`super::v3`] encode it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::parameters;

pub(super) const JSON: &str = "application/json";
pub(super) const YAML: &str = "application/yaml";
pub(super) const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
pub(super) const ANY: &[&str] = &["*/*"];

/// One operation.
pub(super) struct Route {
    pub(super) path: String,
    /// In lower case.
    pub(super) method: &'static str,
    pub(super) description: Cow<'static, str>,
    pub(super) operation_id: String,
    pub(super) tag: String,
    pub(super) kubernetes: Option<Kubernetes>,
    pub(super) parameters: Vec<Parameter>,
    pub(super) body: Option<Body>,
    pub(super) consumes: &'static [&'static str],
    pub(super) produces: &'static [&'static str],
    /// Status codes and their models. 401 is always added.
    pub(super) responses: Vec<(u16, Option<Model>)>,
}

/// The `x-kubernetes-*` extensions of an operation.
pub(super) struct Kubernetes {
    pub(super) action: &'static str,
    pub(super) group: String,
    pub(super) version: String,
    pub(super) kind: String,
}

/// The location of a parameter.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    Path,
    Query,
}

/// A path or query parameter.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Parameter {
    pub(super) name: &'static str,
    pub(super) place: Place,
    pub(super) ty: &'static str,
    pub(super) description: Cow<'static, str>,
}

/// A request body.
pub(super) struct Body {
    pub(super) model: Model,
    pub(super) required: bool,
}

/// The schema of a body or response.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Model {
    /// A type in the facts table.
    Type(&'static str),
    /// A published schema with this name. The caller adds the schema.
    Named(String),
    /// Plain text.
    Text,
}

pub(super) const STATUS: Model = Model::Type("meta.v1.Status");
pub(super) const PATCH: Model = Model::Type("meta.v1.Patch");
pub(super) const DELETE_OPTIONS: Model = Model::Type("meta.v1.DeleteOptions");

impl Parameter {
    pub(super) fn key(&self) -> (&'static str, Place) {
        (self.name, self.place)
    }

    pub(super) fn pretty() -> Self {
        Self {
            name: "pretty",
            place: Place::Query,
            ty: "string",
            description: "If 'true', then the output is pretty printed. Defaults to 'false' unless the \
                          user-agent indicates a browser or command-line HTTP tool (curl and wget)."
                .into(),
        }
    }

    pub(super) fn namespace() -> Self {
        let description = "object name and auth scope, such as for teams and projects";
        Self { name: "namespace", place: Place::Path, ty: "string", description: description.into() }
    }

    pub(super) fn name_of(kind: &str) -> Self {
        let description = format!("name of the {kind}").into();
        Self { name: "name", place: Place::Path, ty: "string", description }
    }

    pub(super) fn rest_of_path() -> Self {
        Self { name: "path", place: Place::Path, ty: "string", description: "path to the resource".into() }
    }

    /// The query parameters of an options kind.
    pub(super) fn of_options(options: &str) -> impl Iterator<Item = Self> + use<> {
        parameters::of_options(options).iter().map(|parameter| Self {
            name: parameter.name,
            place: Place::Query,
            ty: parameter.ty,
            description: Cow::Borrowed(parameter.text.as_ref()),
        })
    }
}

/// The operations of one path and their common parameters.
#[derive(Default)]
pub(super) struct PathRoutes {
    pub(super) routes: Vec<Route>,
    pub(super) shared: Vec<Parameter>,
}

/// Groups routes by path and moves parameters that all operations of a path share to the path, sorted by
/// name.
pub(super) fn by_path(routes: impl IntoIterator<Item = Route>) -> BTreeMap<String, PathRoutes> {
    let mut paths: BTreeMap<String, PathRoutes> = BTreeMap::new();
    for route in routes {
        paths.entry(route.path.clone()).or_default().routes.push(route);
    }
    for path in paths.values_mut() {
        for route in &mut path.routes {
            route.parameters.sort_by_key(Parameter::key);
        }
        let everywhere = |parameter: &Parameter| {
            path.routes.iter().all(|route| route.parameters.iter().any(|p| p.key() == parameter.key()))
        };
        let first = path.routes.first().map(|route| route.parameters.as_slice()).unwrap_or_default();
        path.shared = first.iter().filter(|parameter| everywhere(parameter)).cloned().collect();
        for route in &mut path.routes {
            route.parameters.retain(|parameter| path.shared.iter().all(|s| s.key() != parameter.key()));
        }
    }
    paths
}

/// The ID of an operation, such as `readCoreV1NamespacedPod`, and its tag, such as `core_v1`. The version is
/// empty for operations of a group.
pub(super) fn operation_id(verb: &str, group: &str, version: &str, rest: &str) -> (String, String) {
    let group = if group.is_empty() { "core" } else { group.strip_suffix(".k8s.io").unwrap_or(group) };
    let id = format!("{verb}{}{}{}", word(group, true), word(version, true), word(rest, true));
    let tag = match version {
        "" => word(group, false),
        _ => format!("{}_{}", word(group, false), word(version, false)),
    };
    (id, tag)
}

/// Removes characters that are not valid in an identifier and capitalizes the letter after each gap.
fn word(text: &str, capitalize_first: bool) -> String {
    let mut word = String::with_capacity(text.len());
    let mut capitalize = capitalize_first;
    for (i, c) in text.char_indices() {
        if c.is_alphabetic() || c == '_' || (i != 0 && c.is_numeric()) {
            if capitalize {
                word.extend(c.to_uppercase());
            } else {
                word.push(c);
            }
            capitalize = false;
        } else {
            capitalize = true;
        }
    }
    word
}

/// `name` with its first letter in upper case, as subresources appear in operation IDs.
pub(super) fn title(name: &str) -> String {
    let mut chars = name.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// The noun with its article by upstream's rules: no article before a plural.
pub(super) fn with_article(noun: &str) -> String {
    if noun.ends_with('s') && !noun.ends_with("ss") {
        return noun.to_owned();
    }
    let vowel = noun.starts_with(['a', 'e', 'i', 'o', 'u', 'A', 'E', 'I', 'O', 'U']);
    format!("{} {noun}", if vowel { "an" } else { "a" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operation_ids_consist_of_group_version_and_name() {
        let of = operation_id;
        assert_eq!(
            of("read", "", "v1", "NamespacedPod"),
            ("readCoreV1NamespacedPod".into(), "core_v1".into())
        );
        assert_eq!(
            of("list", "rbac.authorization.k8s.io", "v1", "ClusterRole"),
            ("listRbacAuthorizationV1ClusterRole".into(), "rbacAuthorization_v1".into())
        );
        assert_eq!(
            of("delete", "stable.example-1.com", "v1beta1", "collectionNamespacedCronTab"),
            (
                "deleteStableExample1ComV1beta1CollectionNamespacedCronTab".into(),
                "stableExample1Com_v1beta1".into()
            )
        );
        assert_eq!(of("get", "apps", "", "APIGroup"), ("getAppsAPIGroup".into(), "apps".into()));
    }

    #[test]
    fn articles_follow_the_noun() {
        assert_eq!(with_article("Pod"), "a Pod");
        assert_eq!(with_article("Ingress"), "an Ingress");
        assert_eq!(with_article("Endpoints"), "Endpoints");
    }
}
