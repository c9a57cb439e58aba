//! The attributes of kubewright: they parse and emit, and decide nothing.
//!
//! Use them through the crate `kubewright`, which has what they expand to. What an attribute refuses, it refuses at
//! the word that is wrong, and says what to write.

mod apply;
mod arguments;
mod entry;
mod kubernetes;
mod names;
mod nearest;
mod object;
mod rbac;
mod register;
mod webhook;

use proc_macro::TokenStream;

/// The function becomes `fn main() -> ExitCode`, which hands it to `kubewright::operator!().run(...)`: that reads the
/// flags, sets up logs and threads, finds the cluster and makes the manager. It may return any error that converts
/// into `kubewright::Error`.
#[proc_macro_attribute]
pub fn main(arguments: TokenStream, item: TokenStream) -> TokenStream {
    entry::main(arguments, item)
}

/// It goes on an impl, a struct, an enum, a trait, a module or a function, as often as there are rules. The item stays
/// as it is, and the rule becomes part of the operator's role.
///
/// | key | value |
/// |---|---|
/// | `groups` | API groups; `""` or `core` for pods, services and the like, `*` for all |
/// | `resources` | plurals, with subresources as `pods/log`; `*` for all |
/// | `resource_names` | names of objects that the rule is restricted to |
/// | `verbs` | `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`, `*`, or one of the others that Kubernetes has: `use`, `bind`, `escalate`, `impersonate`, `approve`, `sign`, `attest` |
/// | `urls` | paths that are no resources, instead of groups and resources; verbs are methods then |
/// | `namespace` | the namespace of the Role that the rule goes into; without it the rule is in the ClusterRole |
/// | `role_name` | the role, if not the operator's own |
///
/// Names stand in one text with commas, or in a list: `"get, list"` is `["get", "list"]`. The semicolons of
/// controller-gen are refused. `verbs` and either `groups` with `resources` or `urls` must be there.
///
/// A word that Kubernetes does not know is an error of the compiler, with the nearest one that it knows. Groups
/// that are not Kubernetes' own may have any resources.
#[proc_macro_attribute]
pub fn rbac(arguments: TokenStream, item: TokenStream) -> TokenStream {
    rbac::expand(arguments.into(), item.into()).into()
}

/// It goes on an impl, a struct, an enum, a trait, a module or a function, once for each webhook. The item stays as it
/// is, and the webhook becomes part of the operator's MutatingWebhookConfiguration or ValidatingWebhookConfiguration.
///
/// | key | value | if it is not there |
/// |---|---|---|
/// | `name` | a domain name of three labels at least | an error |
/// | `mutating` | `true` if it changes objects, `false` if it only accepts them | an error |
/// | `path` | where the operator serves it | an error, unless there is a `url` |
/// | `url` | `https://...` outside the cluster, instead of `path` and Service | |
/// | `groups`, `versions`, `resources` | which objects; `*` for all, resources also as `pods/status` | an error |
/// | `verbs` | `create`, `update`, `delete`, `connect`; `*` for all | an error |
/// | `failure_policy` | `fail` or `ignore` | `fail` |
/// | `match_policy` | `exact` or `equivalent` | the API server's `Equivalent` |
/// | `side_effects` | `none` or `noneOnDryRun` | `none` |
/// | `timeout_seconds` | 1 to 30 | the API server's 10 |
/// | `reinvocation_policy` | `never` or `ifNeeded`; of mutating ones only | the API server's `Never` |
/// | `admission_review_versions` | `v1`, `v1beta1` | `v1` |
/// | `service_name`, `service_namespace`, `service_port` | the Service before the operator | `webhook-service`, `system`, 443 |
/// | `namespace_selector`, `object_selector` | a LabelSelector: `{ matchLabels: { "app": "web" } }`, or the same as JSON in a text | every object |
/// | `match_conditions` | `[("name", "expression in CEL")]` | no conditions |
/// | `configuration` | the name of the configuration that it goes into | the operator's own |
///
/// Names stand in one text with commas, or in a list: `"create, update"` is `["create", "update"]`. Choices may be
/// written without quotes.
#[proc_macro_attribute]
pub fn webhook(arguments: TokenStream, item: TokenStream) -> TokenStream {
    webhook::expand(arguments.into(), item.into()).into()
}

/// Beside a struct `T` with named fields stands `TApply` then, with the same fields, each of which may be left out,
/// and a setter for each. Its names on the wire are the same: `rename_all`, `rename`, `alias`, `flatten`, `with` and
/// `skip` of serde count. Types of fields need `Clone`, `Debug`, `PartialEq`, `Serialize` and `Deserialize`.
///
/// | on a field | |
/// |---|---|
/// | nothing | it is applied as a whole |
/// | `#[apply(nested)]` | its struct, which derives `ApplyConfiguration` too, is applied field by field; also within `Option`, `Box`, `Vec` and the values of maps |
///
/// A struct that [`CustomResource`] makes a kind `K` of gives the alias `KApply` as well: the configuration of the
/// whole object, which `Client::apply` takes. Its status must derive `ApplyConfiguration` then.
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
/// | `Deployment { ... }` | a kind; the stable version, if there are others |
/// | `apps::v1::Deployment { ... }`, `"apps/v1" Deployment { ... }` | a kind that several groups or versions have, such as Event |
/// | `api::v1::Guestbook { ... }` | a custom resource, by its Rust type |
/// | `key: "text"`, `3`, `1.5`, `true` | a literal |
/// | `"app.kubernetes.io/name": ...` | a key that is not an identifier |
/// | `(expression): ...` | a computed key of a map |
/// | `key: { ... }`, `key: [ ... ]` | an object or a map, a list |
/// | `key: expression` | any expression; in parentheses or a block if it would be taken for a literal |
/// | `key?: option` | left out if it is `None` |
/// | `..` at the end of an object | required fields may be missing, because another field manager owns them |
///
/// A string in parentheses is an expression, and so is not compared with an enum: `type: ("NewInNextVersion")`.
#[proc_macro]
pub fn object(input: TokenStream) -> TokenStream {
    object::expand(input.into()).into()
}
