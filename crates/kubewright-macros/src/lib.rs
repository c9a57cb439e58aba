//! Procedural macros of kubewright.
//!
//! Use them through the crate `kubewright`, which contains the items that they expand to. Errors point at the
//! wrong token and say how to fix it.

mod apply;
mod arguments;
mod entry;
mod kubernetes;
mod names;
mod nearest;
mod object;
mod olm;
mod rbac;
mod register;
mod webhook;

use proc_macro::TokenStream;

/// The function becomes `fn main() -> ExitCode`, which calls `kubewright::operator!().run(...)`. That parses
/// the flags, sets up logging and the async runtime, connects to the cluster and creates the manager. The
/// function may return any error that converts into `kubewright::ReconcileError`.
#[proc_macro_attribute]
pub fn main(arguments: TokenStream, item: TokenStream) -> TokenStream {
    entry::main(arguments, item)
}

/// Allowed on an impl, a struct, an enum, a trait, a module or a function, once per rule. The item is
/// unchanged. The rule is added to the operator's role.
///
/// | key | value |
/// |---|---|
/// | `groups` | API groups; `""` or `core` for the core group, `*` for all |
/// | `resources` | plurals, also subresources such as `pods/log`; `*` for all |
/// | `resource_names` | restricts the rule to objects with these names |
/// | `verbs` | `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`, `*`, or a special verb: `use`, `bind`, `escalate`, `impersonate`, `approve`, `sign`, `attest` |
/// | `urls` | non-resource URLs, instead of groups and resources; verbs are HTTP methods then |
/// | `namespace` | the namespace of the Role; without it the rule is part of the ClusterRole |
/// | `role_name` | the name of the role; defaults to the operator's role |
///
/// Lists of names are a string with commas or a list of strings: `"get, list"` equals `["get", "list"]`.
/// controller-gen's semicolons are rejected. `verbs` and either `groups` with `resources` or `urls` are
/// required.
///
/// Unknown verbs, groups and resources of Kubernetes are compile errors with a suggestion. Other groups may
/// have any resources.
#[proc_macro_attribute]
pub fn rbac(arguments: TokenStream, item: TokenStream) -> TokenStream {
    rbac::expand(arguments.into(), item.into()).into()
}

/// Allowed on the struct of a kind, next to its `#[kube(...)]`. The item is unchanged. `kubewright bundle` uses
/// the texts in the ClusterServiceVersion.
///
/// | key | value | default |
/// |---|---|---|
/// | `display_name` | the name of the kind for people | the kind in words |
/// | `description` | one or two sentences about the kind | the first paragraph of the kind's documentation |
/// | `icon` | path of an SVG, PNG, JPEG or GIF file in the project, the icon of the operator | no icon |
/// | `capabilities` | the operator's level: `Basic Install`, `Seamless Upgrades`, `Full Lifecycle`, `Deep Insights` or `Auto Pilot` | `Basic Install` |
/// | `categories` | categories of the operator in catalogs, separated by commas | no categories |
///
/// `icon`, `capabilities` and `categories` belong to the operator. If several kinds set them, the first in the
/// order of their source locations applies.
#[proc_macro_attribute]
pub fn olm(arguments: TokenStream, item: TokenStream) -> TokenStream {
    olm::expand(arguments.into(), item.into()).into()
}

/// Allowed on an impl, a struct, an enum, a trait, a module or a function, once per webhook. The item is
/// unchanged. The webhook is added to the operator's MutatingWebhookConfiguration or
/// ValidatingWebhookConfiguration.
///
/// On the impl of a `Defaulter` or `Validator`, all keys are optional: `type Object` determines name, path, rules, a
/// timeout of 5 seconds and a selector without `kube-system` and the operator's namespace. The defaults below apply to
/// other items.
///
/// | key | value | default |
/// |---|---|---|
/// | `name` | a domain name with at least three labels | required |
/// | `mutating` | `true` for a mutating webhook, `false` for a validating one | required |
/// | `path` | the path on which the operator serves it | required without `url` |
/// | `url` | an `https://` URL outside the cluster, instead of `path` and a Service | |
/// | `groups`, `versions`, `resources` | the objects; `*` for all, also subresources such as `pods/status` | required |
/// | `verbs` | `create`, `update`, `delete`, `connect`; `*` for all | required |
/// | `failure_policy` | `fail` or `ignore` | `fail` |
/// | `match_policy` | `exact` or `equivalent` | the API server's `Equivalent` |
/// | `side_effects` | `none` or `noneOnDryRun` | `none` |
/// | `timeout_seconds` | 1 to 30 | the API server's 10 |
/// | `reinvocation_policy` | `never` or `ifNeeded`; mutating webhooks only | the API server's `Never` |
/// | `admission_review_versions` | `v1`, `v1beta1` | `v1` |
/// | `service_name`, `service_namespace`, `service_port` | the Service of the operator | `webhook-service`, `system`, 443 |
/// | `namespace_selector`, `object_selector` | a LabelSelector: `{ matchLabels: { "app": "web" } }`, or JSON in a string | every object |
/// | `match_conditions` | `[("name", "CEL expression")]` | no conditions |
/// | `configuration` | the name of the webhook configuration | the operator's configuration |
///
/// Lists of names are a string with commas or a list of strings: `"create, update"` equals `["create",
/// "update"]`. Enum values such as `fail` may be written without quotes.
#[proc_macro_attribute]
pub fn webhook(arguments: TokenStream, item: TokenStream) -> TokenStream {
    webhook::expand(arguments.into(), &item.into()).into()
}

/// For a struct `T` with named fields, generates `TApply` with the same fields, all optional, and a setter
/// for each. It respects the serde attributes `rename_all`, `rename`, `alias`, `flatten`, `with` and `skip`.
/// Field types need `Clone`, `Debug`, `PartialEq`, `Serialize` and `Deserialize`.
///
/// | on a field | |
/// |---|---|
/// | no attribute | the field is applied as a whole |
/// | `#[apply(nested)]` | the field's struct also derives `ApplyConfiguration` and is applied field by field; also inside `Option`, `Box`, `Vec` and map values |
///
/// For a struct that derives [`CustomResource`] with kind `K`, also generates the alias `KApply` for the
/// whole object, which `Client::apply` accepts. The status struct must derive `ApplyConfiguration` too.
///
/// [`CustomResource`]: https://docs.rs/kube/latest/kube/derive.CustomResource.html
#[proc_macro_derive(ApplyConfiguration, attributes(apply))]
pub fn apply_configuration(item: TokenStream) -> TokenStream {
    apply::expand(item.into()).into()
}

/// # Syntax
///
/// | | |
/// |---|---|
/// | `Deployment { ... }` | a kind; the stable version, if there are several |
/// | `apps::v1::Deployment { ... }`, `"apps/v1" Deployment { ... }` | a kind that exists in several groups or versions, such as Event |
/// | `api::v1::Guestbook { ... }` | a custom resource by its Rust type |
/// | `key: "text"`, `3`, `1.5`, `true` | a literal |
/// | `"app.kubernetes.io/name": ...` | a key that is not an identifier |
/// | `(expression): ...` | a computed map key |
/// | `key: { ... }`, `key: [ ... ]` | an object or map, a list |
/// | `key: expression` | any expression; use parentheses or a block if it looks like a literal |
/// | `key?: option` | omitted if `None` |
/// | `..` at the end of an object | required fields may be missing, because another field manager owns them |
///
/// A string in parentheses is an expression and is not checked against enum values: `type:
/// ("NewInNextVersion")`.
#[proc_macro]
pub fn object(input: TokenStream) -> TokenStream {
    object::expand(input.into()).into()
}
