//! Mistakes in `#[webhook]`.

use serde_json::json;

use super::{guestbook, item, told};
use crate::declare::{Declared, Handler, MatchCondition, Webhook};

fn webhook() -> Webhook {
    let words = |words: &[&str]| words.iter().map(ToString::to_string).collect();
    Webhook {
        item: item("guestbook::webhook::Validator", 20),
        name: "vguestbook.example.com".into(),
        path: "/validate-example-com-v1-guestbook".into(),
        groups: words(&["example.com"]),
        versions: words(&["v1"]),
        resources: words(&["guestbooks"]),
        verbs: words(&["create", "update"]),
        side_effects: "none".into(),
        ..Webhook::default()
    }
}

fn findings(webhooks: Vec<Webhook>) -> String {
    let (mut declarations, _) = guestbook(&json!({}));
    declarations.webhooks = webhooks;
    told(&declarations, &[])
}

#[test]
fn a_handler_that_is_not_registered_is_an_error() {
    let (mut declarations, _) = guestbook(&json!({}));
    let handler = Handler { item: webhook().item, registration: "validator".into() };
    declarations.declared.push(Declared::Handler(handler));
    insta::assert_snapshot!(told(&declarations, &[]), @r"
    error[KW413] src/lib.rs:20 guestbook::webhook::Validator: `Validator` has #[webhook] and is not registered: the API server never calls it
      help: register it before the manager runs, as `manager.validator(...)?` in src/registry.rs, or remove it
    ");
    declarations.webhooks.push(webhook());
    assert_eq!(told(&declarations, &[]), "");
}

#[test]
fn a_webhook_that_can_lock_up_the_cluster_is_an_error() {
    let all = |list: &mut Vec<String>| *list = vec!["*".into()];
    let mut everything = Webhook { failure_policy: "fail".into(), ..webhook() };
    all(&mut everything.groups);
    all(&mut everything.resources);
    insta::assert_snapshot!(findings(vec![everything.clone()]), @r"
    error[KW414] src/lib.rs:20 guestbook::webhook::Validator resources: it is called for every resource, and `failure_policy = fail` refuses all writes of the cluster while the operator is down
      help: name groups and resources, add `object_selector` or `match_conditions`, or write `failure_policy = ignore`
    ");
    assert_eq!(findings(vec![Webhook { failure_policy: "ignore".into(), ..everything.clone() }]), "");
    let selected = json!({ "matchLabels": { "guests": "yes" } });
    assert_eq!(findings(vec![Webhook { object_selector: Some(selected.clone()), ..everything }]), "");

    let pods = Webhook {
        failure_policy: "fail".into(),
        groups: vec![String::new()],
        resources: vec!["pods".into()],
        ..webhook()
    };
    insta::assert_snapshot!(findings(vec![pods.clone()]), @r"
    error[KW415] src/lib.rs:20 guestbook::webhook::Validator namespace_selector: the operator needs pods to start, and a webhook for them without a selector can refuse its own: the cluster cannot recover by itself
      help: leave `namespace_selector` out to exclude kube-system and the operator's namespace, or add `object_selector`
    ");
    let usual = Some(kubewright_apimachinery::webhook::outside_of_operators());
    assert_eq!(findings(vec![Webhook { namespace_selector: usual, ..pods.clone() }]), "");
    assert_eq!(findings(vec![Webhook { namespace_selector: Some(selected), ..pods }]), "");
}

#[test]
fn a_namespace_selector_that_includes_the_operators_namespace_is_a_warning() {
    let names =
        json!([{ "key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system"] }]);
    let own = Webhook {
        failure_policy: "fail".into(),
        namespace_selector: Some(json!({ "matchExpressions": names })),
        ..webhook()
    };
    insta::assert_snapshot!(findings(vec![own]), @r#"
    warning[KW416] src/lib.rs:20 guestbook::webhook::Validator namespace_selector: `namespace_selector` does not exclude the operator's own namespace: an object there cannot be written while the operator is down
      help: add { key: "control-plane", operator: "NotIn", values: ["controller-manager"] }, or leave `namespace_selector` out
    "#);
}

fn condition(name: &str, expression: &str) -> MatchCondition {
    MatchCondition { name: name.into(), expression: expression.into() }
}

#[test]
fn a_good_webhook_is_good() {
    let mutating = Webhook { mutating: true, reinvocation_policy: "ifNeeded".into(), ..webhook() };
    let conditional = Webhook {
        name: "conditional.example.com".into(),
        match_conditions: vec![condition("not-me", "request.userInfo.username != 'me'")],
        namespace_selector: Some(json!({ "matchLabels": { "a": "b" } })),
        ..webhook()
    };
    assert_eq!(findings(vec![webhook(), mutating, conditional]), "");
}

#[test]
fn two_webhooks_of_one_configuration_need_two_names() {
    let other = Webhook { item: item("guestbook::webhook::Other", 40), ..webhook() };
    insta::assert_snapshot!(findings(vec![webhook(), other.clone()]), @r"
    error[KW401] src/lib.rs:40 guestbook::webhook::Other name: `vguestbook.example.com` is already the name of guestbook::webhook::Validator (src/lib.rs:20): the API server refuses a configuration that has it twice
      help: give each webhook a name of its own, as `mguestbook.example.com` and `vguestbook.example.com`
    ");
    assert_eq!(findings(vec![webhook(), Webhook { configuration: "other".into(), ..other }]), "");
}

#[test]
fn each_argument_is_checked() {
    let wrong = Webhook {
        name: "guestbook".into(),
        path: "validate".into(),
        timeout_seconds: Some(60),
        reinvocation_policy: "never".into(),
        side_effects: String::new(),
        verbs: vec!["creat".into()],
        versions: Vec::new(),
        failure_policy: "retry".into(),
        match_policy: "roughly".into(),
        admission_review_versions: vec!["v2".into()],
        namespace_selector: Some(json!({ "matchLabels": { "a b": "c" } })),
        ..webhook()
    };
    insta::assert_snapshot!(findings(vec![wrong]), @r#"
    error[KW410] src/lib.rs:20 guestbook::webhook::Validator admission_review_versions: Invalid value: ["v2"]: must include at least one of v1, v1beta1
      help: write `v1`, or leave it out
    error[KW409] src/lib.rs:20 guestbook::webhook::Validator failure_policy: Unsupported value: "retry": supported values: "Fail", "Ignore"
      help: write `fail` or `ignore`
    error[KW409] src/lib.rs:20 guestbook::webhook::Validator match_policy: Unsupported value: "roughly": supported values: "Equivalent", "Exact"
      help: write `exact` or `equivalent`
    error[KW402] src/lib.rs:20 guestbook::webhook::Validator name: Invalid value: "guestbook": should be a domain with at least three segments separated by dots
      help: write a domain with at least three labels, as `vguestbook.example.com`
    error[KW411] src/lib.rs:20 guestbook::webhook::Validator namespace_selector: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
      help: write a LabelSelector
    error[KW403] src/lib.rs:20 guestbook::webhook::Validator path: Invalid value: "validate": must start with a '/'
      help: write a path from the root, as `/validate-guestbook-example-com-v1-guestbook`
    error[KW405] src/lib.rs:20 guestbook::webhook::Validator reinvocation_policy: the API server does not know this field, and drops it
      help: write `never` or `ifNeeded` for a mutating webhook, and nothing for a validating one: those run once, after all mutating ones
    error[KW406] src/lib.rs:20 guestbook::webhook::Validator side_effects: Required value: must specify one of None, NoneOnDryRun
      help: write `side_effects = "none"`, or `"noneOnDryRun"` if the webhook looks at `dryRun`
    error[KW404] src/lib.rs:20 guestbook::webhook::Validator timeout_seconds: Invalid value: 60: the timeout value must be between 1 and 30 seconds
      help: write 1 to 30; without it, the API server waits 10 s
    error[KW407] src/lib.rs:20 guestbook::webhook::Validator verbs: Unsupported value: "creat": supported values: "*", "CONNECT", "CREATE", "DELETE", "UPDATE"
      help: write `verbs = "create, update"`: create, update, delete, connect or `*`
    error[KW407] src/lib.rs:20 guestbook::webhook::Validator versions: Required value
      help: name versions, as `versions = "v1"`; `*` is all
    "#);
}

#[test]
fn an_address_is_a_path_or_a_url() {
    insta::assert_snapshot!(findings(vec![Webhook { path: String::new(), ..webhook() }]), @r"
    error[KW403] src/lib.rs:20 guestbook::webhook::Validator path: without `path` or `url` the API server does not know where to send requests
      help: give either `path`, as `/validate-guestbook-example-com-v1-guestbook`, or `url`
    ");
    insta::assert_snapshot!(findings(vec![Webhook { url: "https://example.com/v".into(), ..webhook() }]), @r"
    error[KW403] src/lib.rs:20 guestbook::webhook::Validator path: `path` is of the operator's own server, and `url` of another: only one can be meant
      help: give either `path`, as `/validate-guestbook-example-com-v1-guestbook`, or `url`
    ");
    let plain = Webhook { path: String::new(), url: "http://example.com/v".into(), ..webhook() };
    insta::assert_snapshot!(findings(vec![plain]), @r#"
    error[KW412] src/lib.rs:20 guestbook::webhook::Validator url: Invalid value: "http": 'https' is the only allowed URL scheme; desired format: https://host[/path]
      help: write an address such as `https://hooks.example.com/validate`
    "#);
}

#[test]
fn match_conditions_are_compiled() {
    let conditions = vec![condition("a", "object.spec.size"), condition("a", "reqest.name == 'x'")];
    insta::assert_snapshot!(findings(vec![Webhook { match_conditions: conditions, ..webhook() }]), @r#"
    error[KW408] src/lib.rs:20 guestbook::webhook::Validator match_conditions: Duplicate value: "a"
      help: write CEL that is true or false, over `object`, `oldObject`, `request` and `namespaceObject`, each with a name of its own
    error[KW408] src/lib.rs:20 guestbook::webhook::Validator match_conditions: Invalid value: "object.spec.size": must evaluate to bool but got dyn
      help: write CEL that is true or false, over `object`, `oldObject`, `request` and `namespaceObject`, each with a name of its own
    error[KW408] src/lib.rs:20 guestbook::webhook::Validator match_conditions: Invalid value: "reqest.name == 'x'": compilation failed: ERROR: <input>:1:1: undeclared reference to 'reqest' (in container '')
       | reqest.name == 'x'
       | ^
      help: write CEL that is true or false, over `object`, `oldObject`, `request` and `namespaceObject`, each with a name of its own
    "#);
}

#[test]
fn the_name_of_a_configuration_is_checked() {
    insta::assert_snapshot!(findings(vec![Webhook { configuration: "Hooks!".into(), ..webhook() }]), @r#"
    error[KW400] src/lib.rs:20 guestbook::webhook::Validator configuration: Invalid value: "Hooks!": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
      help: write a name such as `guestbook-webhooks`
    "#);
}

#[test]
fn a_selector_of_another_shape_is_told() {
    insta::assert_snapshot!(findings(vec![Webhook { object_selector: Some(json!(["a"])), ..webhook() }]), @r"
    error[KW400] src/lib.rs:20 guestbook::webhook::Validator: json: cannot unmarshal array into Go struct field ValidatingWebhook.webhooks.objectSelector of type v1.LabelSelector
      help: write a webhook that an API server accepts
    ");
}
