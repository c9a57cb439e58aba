//! Invalid `#[webhook]` attributes.

use serde_json::json;

use super::{guestbook, item, rendered};
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
    let (mut inventory, _) = guestbook(&json!({}));
    inventory.webhooks = webhooks;
    rendered(&inventory, &[])
}

#[test]
fn a_handler_that_is_not_registered_is_an_error() {
    let (mut inventory, _) = guestbook(&json!({}));
    let handler = Handler { item: webhook().item, registration: "validator".into() };
    inventory.declared.push(Declared::Handler(handler));
    insta::assert_snapshot!(rendered(&inventory, &[]), @r"
    error[KW413] src/lib.rs:20 guestbook::webhook::Validator: `Validator` has #[webhook] but is not registered, so the API server never calls it
      help: register it before the manager runs, as `manager.validator(...)?` in src/registry.rs, or remove it
    ");
    inventory.webhooks.push(webhook());
    assert_eq!(rendered(&inventory, &[]), "");
}

#[test]
fn a_webhook_that_can_lock_up_the_cluster_is_an_error() {
    let all = |list: &mut Vec<String>| *list = vec!["*".into()];
    let mut everything = Webhook { failure_policy: "fail".into(), ..webhook() };
    all(&mut everything.groups);
    all(&mut everything.resources);
    insta::assert_snapshot!(findings(vec![everything.clone()]), @r"
    error[KW414] src/lib.rs:20 guestbook::webhook::Validator resources: it matches every resource, and with `failure_policy = fail` all writes in the cluster fail while the operator is down
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
    error[KW415] src/lib.rs:20 guestbook::webhook::Validator namespace_selector: the operator needs pods to start, and a webhook for pods without a selector can reject the operator's own; the cluster cannot recover without manual intervention
      help: leave `namespace_selector` out to exclude kube-system and the operator's namespace, or add `object_selector`
    ");
    let usual = Some(kubewright_apimachinery::webhook::outside_of_operators());
    assert_eq!(findings(vec![Webhook { namespace_selector: usual.clone(), ..pods.clone() }]), "");
    assert_eq!(findings(vec![Webhook { namespace_selector: Some(selected), ..pods.clone() }]), "");

    // A namespace selector has no effect on Nodes.
    let mut nodes = Webhook { namespace_selector: usual, ..pods };
    nodes.resources = vec!["nodes".into()];
    insta::assert_snapshot!(findings(vec![nodes.clone()]), @r"
    error[KW415] src/lib.rs:20 guestbook::webhook::Validator namespace_selector: the operator needs nodes to start, and a webhook for nodes without a selector can reject the operator's own; the cluster cannot recover without manual intervention
      help: add `object_selector` or `match_conditions`: `namespace_selector` has no effect on cluster-scoped resources
    ");
    for all in ["*", "*/*"] {
        nodes.resources = vec![all.into()];
        assert!(findings(vec![nodes.clone()]).contains("KW415] src/lib.rs:20 guestbook::webhook::Validator"));
    }
    nodes.match_conditions = vec![condition("not-me", "request.userInfo.username != 'me'")];
    assert_eq!(findings(vec![nodes]), "");
}

#[test]
fn a_raw_handler_with_a_default_selector_has_no_findings() {
    let raw = Webhook { resources: vec!["guestbooks".into(), "guests".into()], ..webhook() };
    assert_eq!(findings(vec![raw.clone().with_defaults()]), "");
    let all = Webhook { namespace_selector: Some(json!({})), ..raw }.with_defaults();
    assert!(findings(vec![all]).starts_with("error[KW416]"));
}

#[test]
fn a_namespace_selector_that_includes_the_operators_namespace_is_an_error() {
    let names =
        json!([{ "key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system"] }]);
    let own = Webhook {
        failure_policy: "fail".into(),
        namespace_selector: Some(json!({ "matchExpressions": names })),
        ..webhook()
    };
    insta::assert_snapshot!(findings(vec![own]), @r#"
    error[KW416] src/lib.rs:20 guestbook::webhook::Validator namespace_selector: `namespace_selector` does not exclude the operator's own namespace: an object there cannot be written while the operator is down
      help: add { key: "control-plane", operator: "NotIn", values: ["controller-manager"] }, or leave `namespace_selector` out
    "#);
}

fn condition(name: &str, expression: &str) -> MatchCondition {
    MatchCondition { name: name.into(), expression: expression.into() }
}

#[test]
fn a_valid_webhook_has_no_findings() {
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
fn webhooks_of_a_configuration_need_unique_names() {
    let other = Webhook { item: item("guestbook::webhook::Other", 40), ..webhook() };
    insta::assert_snapshot!(findings(vec![webhook(), other.clone()]), @"
    error[KW401] src/lib.rs:40 guestbook::webhook::Other name: `vguestbook.example.com` is also the name of guestbook::webhook::Validator (src/lib.rs:20): the API server rejects a configuration with duplicate names
      help: give each webhook a unique name, such as `mguestbook.example.com` and `vguestbook.example.com`
    ");
    assert_eq!(findings(vec![webhook(), Webhook { configuration: "other".into(), ..other }]), "");
}

#[test]
fn each_argument_is_validated() {
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
      help: use `v1`, or remove it
    error[KW409] src/lib.rs:20 guestbook::webhook::Validator failure_policy: Unsupported value: "retry": supported values: "Fail", "Ignore"
      help: use `fail` or `ignore`
    error[KW409] src/lib.rs:20 guestbook::webhook::Validator match_policy: Unsupported value: "roughly": supported values: "Equivalent", "Exact"
      help: use `exact` or `equivalent`
    error[KW402] src/lib.rs:20 guestbook::webhook::Validator name: Invalid value: "guestbook": should be a domain with at least three segments separated by dots
      help: use a domain name with at least three labels, such as `vguestbook.example.com`
    error[KW411] src/lib.rs:20 guestbook::webhook::Validator namespace_selector: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
      help: use a valid LabelSelector
    error[KW403] src/lib.rs:20 guestbook::webhook::Validator path: Invalid value: "validate": must start with a '/'
      help: use an absolute path such as `/validate-guestbook-example-com-v1-guestbook`
    error[KW405] src/lib.rs:20 guestbook::webhook::Validator reinvocation_policy: unknown field, which the API server drops
      help: use `never` or `ifNeeded` for a mutating webhook, and remove it from a validating one, which runs once after all mutating webhooks
    error[KW406] src/lib.rs:20 guestbook::webhook::Validator side_effects: Required value: must specify one of None, NoneOnDryRun
      help: write `side_effects = "none"`, or `"noneOnDryRun"` if the webhook respects `dryRun`
    error[KW404] src/lib.rs:20 guestbook::webhook::Validator timeout_seconds: Invalid value: 60: the timeout value must be between 1 and 30 seconds
      help: use 1 to 30; the default is 10 seconds
    error[KW407] src/lib.rs:20 guestbook::webhook::Validator verbs: Unsupported value: "creat": supported values: "*", "CONNECT", "CREATE", "DELETE", "UPDATE"
      help: write `verbs = "create, update"`: create, update, delete, connect or `*`
    error[KW407] src/lib.rs:20 guestbook::webhook::Validator versions: Required value
      help: add versions, such as `versions = "v1"`; `*` matches all
    "#);
}

#[test]
fn a_webhook_has_either_a_path_or_a_url() {
    insta::assert_snapshot!(findings(vec![Webhook { path: String::new(), ..webhook() }]), @"
    error[KW403] src/lib.rs:20 guestbook::webhook::Validator path: neither `path` nor `url` is set, so the API server cannot send requests
      help: set either `path`, such as `/validate-guestbook-example-com-v1-guestbook`, or `url`
    ");
    insta::assert_snapshot!(findings(vec![Webhook { url: "https://example.com/v".into(), ..webhook() }]), @"
    error[KW403] src/lib.rs:20 guestbook::webhook::Validator path: `path` and `url` are mutually exclusive: `path` is on the operator's server, `url` on another one
      help: set either `path`, such as `/validate-guestbook-example-com-v1-guestbook`, or `url`
    ");
    let plain = Webhook { path: String::new(), url: "http://example.com/v".into(), ..webhook() };
    insta::assert_snapshot!(findings(vec![plain]), @r#"
    error[KW412] src/lib.rs:20 guestbook::webhook::Validator url: Invalid value: "http": 'https' is the only allowed URL scheme; desired format: https://host[/path]
      help: use a URL such as `https://hooks.example.com/validate`
    "#);
}

#[test]
fn match_conditions_are_compiled() {
    let conditions = vec![condition("a", "object.spec.size"), condition("a", "reqest.name == 'x'")];
    insta::assert_snapshot!(findings(vec![Webhook { match_conditions: conditions, ..webhook() }]), @r#"
    error[KW408] src/lib.rs:20 guestbook::webhook::Validator match_conditions: Duplicate value: "a"
      help: use boolean CEL expressions over `object`, `oldObject`, `request` and `namespaceObject`, each with a unique name
    error[KW408] src/lib.rs:20 guestbook::webhook::Validator match_conditions: Invalid value: "object.spec.size": must evaluate to bool but got dyn
      help: use boolean CEL expressions over `object`, `oldObject`, `request` and `namespaceObject`, each with a unique name
    error[KW408] src/lib.rs:20 guestbook::webhook::Validator match_conditions: Invalid value: "reqest.name == 'x'": compilation failed: ERROR: <input>:1:1: undeclared reference to 'reqest' (in container '')
       | reqest.name == 'x'
       | ^
      help: use boolean CEL expressions over `object`, `oldObject`, `request` and `namespaceObject`, each with a unique name
    "#);
}

#[test]
fn the_name_of_a_configuration_is_validated() {
    insta::assert_snapshot!(findings(vec![Webhook { configuration: "Hooks!".into(), ..webhook() }]), @r#"
    error[KW400] src/lib.rs:20 guestbook::webhook::Validator configuration: Invalid value: "Hooks!": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
      help: use a name such as `guestbook-webhooks`
    "#);
}

#[test]
fn an_invalid_selector_is_reported() {
    insta::assert_snapshot!(findings(vec![Webhook { object_selector: Some(json!(["a"])), ..webhook() }]), @"
    error[KW400] src/lib.rs:20 guestbook::webhook::Validator: json: cannot unmarshal array into Go struct field ValidatingWebhook.webhooks.objectSelector of type v1.LabelSelector
      help: change the webhook so that the API server accepts it
    ");
}
