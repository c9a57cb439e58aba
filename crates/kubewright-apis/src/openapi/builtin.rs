//! Operations of built-in resources, discovery, `/version` and OpenID.
//!
//! Invariant: an operation is published exactly if the facts table has its verb.

use super::route::{
    ANY, Body, DELETE_OPTIONS, JSON, Kubernetes, Model, PATCH, PROTOBUF, Parameter, Route, STATUS, YAML,
    operation_id, title, with_article,
};
use crate::facts::{self, Resource, Subresource};

const OBJECT: &[&str] = &[JSON, YAML, PROTOBUF];
const STREAM: &[&str] = &[
    JSON,
    YAML,
    PROTOBUF,
    "application/json;stream=watch",
    "application/vnd.kubernetes.protobuf;stream=watch",
];
const LOG: &[&str] = &["text/plain", JSON, YAML, PROTOBUF];
const PATCHES: &[&str] = &[
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
];

/// The operations of a group version: discovery and all resources.
pub(super) fn group_version(group: &'static str, version: &'static str) -> Vec<Route> {
    let prefix = prefix(group, version);
    let resource_list = Model::Type("meta.v1.APIResourceList");
    let mut routes =
        vec![discovery(&prefix, "get available resources", group, version, "APIResources", resource_list)];
    let resources = facts::resources().iter().filter(|r| r.group == group && r.version == version);
    for resource in resources {
        of_resource(&prefix, resource, &mut routes);
        for subresource in &resource.subresources {
            of_subresource(&prefix, resource, subresource, &mut routes);
        }
    }
    routes
}

/// The discovery operation of `/apis/<group>/`.
pub(super) fn group(group: &str) -> Route {
    let path = format!("/apis/{group}");
    discovery(&path, "get information of a group", group, "", "APIGroup", Model::Type("meta.v1.APIGroup"))
}

/// Operations outside of groups: the path without slashes, and the operation.
pub(super) fn roots() -> [(&'static str, Route); 5] {
    let plain = |path: &str, description: &'static str, id: &str, tag: &str, produces, model| Route {
        path: format!("/{path}/"),
        method: "get",
        description: description.into(),
        operation_id: id.to_owned(),
        tag: tag.to_owned(),
        kubernetes: None,
        parameters: Vec::new(),
        body: None,
        consumes: &[],
        produces,
        responses: vec![(200, Some(model))],
    };
    let versions = "get available API versions";
    [
        (
            ".well-known/openid-configuration",
            plain(
                ".well-known/openid-configuration",
                "get service account issuer OpenID configuration, also known as the 'OIDC discovery doc'",
                "getServiceAccountIssuerOpenIDConfiguration",
                "WellKnown",
                &[JSON],
                Model::Text,
            ),
        ),
        (
            "openid/v1/jwks",
            plain(
                "openid/v1/jwks",
                "get service account issuer OpenID JSON Web Key Set (contains public token verification keys)",
                "getServiceAccountIssuerOpenIDKeyset",
                "openid",
                &["application/jwk-set+json"],
                Model::Text,
            ),
        ),
        (
            "version",
            Route {
                consumes: &[JSON],
                ..plain(
                    "version",
                    "get the version information for this server",
                    "getCodeVersion",
                    "version",
                    &[JSON],
                    Model::Type("version.Info"),
                )
            },
        ),
        ("api", discovery("/api", versions, "", "", "APIVersions", Model::Type("meta.v1.APIVersions"))),
        (
            "apis",
            Route {
                operation_id: "getAPIVersions".to_owned(),
                tag: "apis".to_owned(),
                ..discovery("/apis", versions, "", "", "APIVersions", Model::Type("meta.v1.APIGroupList"))
            },
        ),
    ]
}

fn prefix(group: &str, version: &str) -> String {
    if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") }
}

fn discovery(
    path: &str,
    description: &'static str,
    group: &str,
    version: &str,
    what: &str,
    model: Model,
) -> Route {
    let (operation_id, tag) = operation_id("get", group, version, what);
    Route {
        path: format!("{path}/"),
        method: "get",
        description: description.into(),
        operation_id,
        tag,
        kubernetes: None,
        parameters: Vec::new(),
        body: None,
        consumes: OBJECT,
        produces: OBJECT,
        responses: vec![(200, Some(model))],
    }
}

/// The resource or subresource of a set of operations.
struct Target<'a> {
    resource: &'a Resource,
    subresource: &'a str,
    /// Group, version and kind of the request and response body.
    kind: (&'a str, &'a str, &'a str),
    model: Model,
}

/// The properties of one operation that differ within its target.
struct Operation<'a> {
    path: &'a str,
    method: &'static str,
    action: &'static str,
    description: String,
    /// The parts of the operation ID: verb, and the text before and after the kind.
    id: (&'a str, &'a str, &'a str),
    all_namespaces: bool,
    options: &'a [&'a str],
    body: Option<Body>,
    consumes: &'static [&'static str],
    produces: &'static [&'static str],
    responses: &'a [u16],
    answer: Model,
}

impl Target<'_> {
    /// `plain` and the kind, or `status of the specified Pod` for a subresource.
    fn noun(&self, of_the: &str, plain: &str) -> String {
        match self.subresource {
            "" => format!("{plain}{}", self.resource.kind),
            subresource => format!("{subresource}{of_the}{}", self.resource.kind),
        }
    }

    fn route(&self, operation: Operation<'_>) -> Route {
        let (group, version, kind) = self.kind;
        let resource = self.resource;
        let namespaced = resource.namespaced() && !operation.all_namespaces;
        let (verb, before, behind) = operation.id;
        let rest = format!(
            "{before}{}{}{}{behind}{}",
            if namespaced { "Namespaced" } else { "" },
            resource.kind,
            title(self.subresource),
            if operation.all_namespaces { "ForAllNamespaces" } else { "" },
        );
        let (operation_id, tag) = operation_id(verb, resource.group, resource.version, &rest);
        let mut parameters = Vec::new();
        if operation.action != "connect" {
            parameters.push(Parameter::pretty());
        }
        if namespaced {
            parameters.push(Parameter::namespace());
        }
        if operation.path.contains("{name}") {
            parameters.push(Parameter::name_of(kind));
        }
        if operation.path.ends_with("/{path}") {
            parameters.push(Parameter::rest_of_path());
        }
        for options in operation.options {
            for parameter in Parameter::of_options(options) {
                if parameters.iter().all(|known| known.key() != parameter.key()) {
                    parameters.push(parameter);
                }
            }
        }
        if operation.action == "deletecollection" {
            parameters.retain(|parameter| !matches!(parameter.name, "watch" | "allowWatchBookmarks"));
        }
        Route {
            path: operation.path.to_owned(),
            method: operation.method,
            description: operation.description.into(),
            operation_id,
            tag,
            kubernetes: Some(Kubernetes {
                action: operation.action,
                group: group.to_owned(),
                version: version.to_owned(),
                kind: kind.to_owned(),
            }),
            parameters,
            body: operation.body,
            consumes: operation.consumes,
            produces: operation.produces,
            responses: operation
                .responses
                .iter()
                .map(|code| (*code, Some(operation.answer.clone())))
                .collect(),
        }
    }

    /// An operation with the common properties of the target.
    fn operation<'a>(&self, path: &'a str, method: &'static str, action: &'static str) -> Operation<'a> {
        Operation {
            path,
            method,
            action,
            description: String::new(),
            id: ("", "", ""),
            all_namespaces: false,
            options: &[],
            body: None,
            consumes: ANY,
            produces: OBJECT,
            responses: &[200],
            answer: self.model.clone(),
        }
    }

    fn written(&self) -> Body {
        Body { model: self.model.clone(), required: true }
    }

    fn get(&self, path: &str) -> Route {
        let log = self.subresource == "log";
        self.route(Operation {
            description: format!("read {}", self.noun(" of the specified ", "the specified ")),
            id: ("read", "", ""),
            options: if log { &["PodLogOptions"] } else { &[] },
            produces: if log { LOG } else { OBJECT },
            answer: if log { Model::Text } else { self.model.clone() },
            ..self.operation(path, "get", "get")
        })
    }

    fn put(&self, path: &str) -> Route {
        self.route(Operation {
            description: format!("replace {}", self.noun(" of the specified ", "the specified ")),
            id: ("replace", "", ""),
            options: &["UpdateOptions"],
            body: Some(self.written()),
            responses: &[200, 201],
            ..self.operation(path, "put", "put")
        })
    }

    fn patch(&self, path: &str) -> Route {
        self.route(Operation {
            description: format!("partially update {}", self.noun(" of the specified ", "the specified ")),
            id: ("patch", "", ""),
            options: &["PatchOptions"],
            body: Some(Body { model: PATCH, required: true }),
            consumes: PATCHES,
            responses: &[200, 201],
            ..self.operation(path, "patch", "patch")
        })
    }

    fn post(&self, path: &str) -> Route {
        let noun = with_article(self.resource.kind);
        self.route(Operation {
            description: match self.subresource {
                "" => format!("create {noun}"),
                subresource => format!("create {subresource} of {noun}"),
            },
            id: ("create", "", ""),
            options: &["CreateOptions"],
            body: Some(self.written()),
            responses: &[200, 201, 202],
            ..self.operation(path, "post", "post")
        })
    }

    fn delete(&self, path: &str) -> Route {
        let resource = self.resource;
        self.route(Operation {
            description: format!("delete {}", with_article(resource.kind)),
            id: ("delete", "", ""),
            options: &["DeleteOptions"],
            body: Some(Body { model: DELETE_OPTIONS, required: false }),
            responses: &[200, 202],
            answer: if answers_deleted(resource) { self.model.clone() } else { STATUS },
            ..self.operation(path, "delete", "delete")
        })
    }

    fn delete_collection(&self, path: &str) -> Route {
        self.route(Operation {
            description: format!("delete collection of {}", self.resource.kind),
            id: ("delete", "collection", ""),
            options: &["DeleteOptions", "ListOptions"],
            body: Some(Body { model: DELETE_OPTIONS, required: false }),
            answer: STATUS,
            ..self.operation(path, "delete", "deletecollection")
        })
    }

    fn list(&self, path: &str, list: &Model, all_namespaces: bool) -> Route {
        let watched = if has(&self.resource.verbs, "watch") { " or watch" } else { "" };
        self.route(Operation {
            description: format!("list{watched} objects of kind {}", self.resource.kind),
            id: ("list", "", ""),
            all_namespaces,
            options: &["ListOptions"],
            produces: STREAM,
            answer: list.clone(),
            ..self.operation(path, "get", "list")
        })
    }

    fn watch(&self, path: &str, action: &'static str, all_namespaces: bool) -> Route {
        let kind = self.resource.kind;
        let deprecated = "deprecated: use the 'watch' parameter with a list operation instead";
        let (description, suffix) = match action {
            "watchlist" => (format!("watch individual changes to a list of {kind}. {deprecated}."), "List"),
            _ => (
                format!(
                    "watch changes to an object of kind {kind}. {deprecated}, filtered to a single item with \
                     the 'fieldSelector' parameter."
                ),
                "",
            ),
        };
        self.route(Operation {
            description,
            id: ("watch", "", suffix),
            all_namespaces,
            options: &["ListOptions"],
            produces: STREAM,
            answer: Model::Type("meta.v1.WatchEvent"),
            ..self.operation(path, "get", action)
        })
    }

    fn connect(&self, path: &str, method: &'static str) -> Route {
        let (_, _, options) = self.kind;
        let suffix = if path.ends_with("/{path}") { "WithPath" } else { "" };
        self.route(Operation {
            description: format!(
                "connect {} requests to {} of {}",
                method.to_uppercase(),
                self.subresource,
                self.resource.kind
            ),
            id: ("connect", &title(method), suffix),
            options: &[options],
            produces: ANY,
            answer: Model::Text,
            ..self.operation(path, method, "connect")
        })
    }
}

fn of_resource(prefix: &str, resource: &Resource, routes: &mut Vec<Route>) {
    let Some(model) = model(resource.group, resource.version, resource.kind) else { return };
    let kind = (resource.group, resource.version, resource.kind);
    let target = Target { resource, subresource: "", kind, model };
    let plural = resource.plural;
    let within = if resource.namespaced() { "namespaces/{namespace}/" } else { "" };
    let collection = format!("{prefix}/{within}{plural}");
    let item = format!("{collection}/{{name}}");
    let everywhere = resource.namespaced().then(|| format!("{prefix}/{plural}"));
    for verb in &resource.verbs {
        match *verb {
            "get" => routes.push(target.get(&item)),
            "update" => routes.push(target.put(&item)),
            "patch" => routes.push(target.patch(&item)),
            "delete" => routes.push(target.delete(&item)),
            "create" => routes.push(target.post(&collection)),
            "deletecollection" => routes.push(target.delete_collection(&collection)),
            "list" => {
                let kind = format!("{}List", resource.kind);
                let Some(list) = self::model(resource.group, resource.version, &kind) else { continue };
                routes.push(target.list(&collection, &list, false));
                routes.extend(everywhere.iter().map(|path| target.list(path, &list, true)));
            }
            "watch" => {
                let watch = |path: &str| path.replacen(prefix, &format!("{prefix}/watch"), 1);
                routes.push(target.watch(&watch(&collection), "watchlist", false));
                routes.push(target.watch(&watch(&item), "watch", false));
                routes.extend(everywhere.iter().map(|path| target.watch(&watch(path), "watchlist", true)));
            }
            _ => {}
        }
    }
}

fn of_subresource(prefix: &str, resource: &Resource, subresource: &Subresource, routes: &mut Vec<Route>) {
    let group = subresource.group.unwrap_or(resource.group);
    let version = subresource.version.unwrap_or(resource.version);
    let within = if resource.namespaced() { "namespaces/{namespace}/" } else { "" };
    let path = format!("{prefix}/{within}{}/{{name}}/{}", resource.plural, subresource.name);
    let kind = (group, version, subresource.kind);
    let Some(model) = model(group, version, subresource.kind) else {
        // A connect operation. Its options are query parameters and have no schema.
        let target = Target { resource, subresource: subresource.name, kind, model: Model::Text };
        connections(&target, &path, routes);
        return;
    };
    let target = Target { resource, subresource: subresource.name, kind, model };
    for verb in &subresource.verbs {
        match *verb {
            "get" => routes.push(target.get(&path)),
            "update" => routes.push(target.put(&path)),
            "patch" => routes.push(target.patch(&path)),
            "create" => routes.push(target.post(&path)),
            _ => {}
        }
    }
}

fn connections(target: &Target<'_>, path: &str, routes: &mut Vec<Route>) {
    let proxy = target.subresource == "proxy";
    let methods: &[&'static str] =
        if proxy { &["get", "put", "post", "delete", "options", "head", "patch"] } else { &["get", "post"] };
    for method in methods {
        routes.push(target.connect(path, method));
        if proxy {
            routes.push(target.connect(&format!("{path}/{{path}}"), method));
        }
    }
}

fn model(group: &str, version: &str, kind: &str) -> Option<Model> {
    facts::type_of_kind(group, version, kind).map(|ty| Model::Type(ty.name))
}

fn has(verbs: &[&str], verb: &str) -> bool {
    verbs.contains(&verb)
}

/// Whether the response of a delete is published as the object instead of a Status.
fn answers_deleted(resource: &Resource) -> bool {
    let core = [
        "persistentvolumeclaims",
        "persistentvolumes",
        "pods",
        "podtemplates",
        "resourcequotas",
        "serviceaccounts",
        "services",
    ];
    let storage =
        ["csidrivers", "csinodes", "storageclasses", "volumeattachments", "volumeattributesclasses"];
    match resource.group {
        "" => core.contains(&resource.plural),
        "storage.k8s.io" => storage.contains(&resource.plural),
        group => group == "resource.k8s.io",
    }
}
