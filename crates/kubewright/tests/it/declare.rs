//! Inventory of attributes on all kinds of items.

use std::path::Path;

use kubewright::declare::{self, Declared, Item, MatchCondition, Rule, Webhook};
use kubewright::k8s_openapi::api::core::v1::ConfigMap;
use kubewright::prelude::*;
use kubewright::serde_json::json;
use kubewright::webhook::{
    AdmissionHandler, AdmissionRequest, AdmissionResponse, Rejection, Validation, Validator,
};

const FILE: &str = file!();

#[rbac(groups = "apps", resources = "deployments, deployments/scale", verbs = "get, list, watch")]
#[rbac(groups = "core, batch", resources = ["pods", "jobs"], verbs = ["create"], namespace = "work", role_name = "worker")]
struct OnStruct<T>(T);

#[rbac(groups = "", resources = "secrets", resource_names = "token, key", verbs = "get")]
impl<T> OnStruct<T> {
    #[rbac(urls = "/metrics, /healthz/*", verbs = "get")]
    fn method(self) -> T {
        self.0
    }

    #[rbac(groups = "*", resources = "*", verbs = "*")]
    const fn associated<U: Copy>(value: U) -> U {
        value
    }
}

#[rbac(groups = "example.com", resources = "guestbooks/finalizers", verbs = "update")]
async fn on_function() {
    std::future::ready(()).await;
}

mod inner {
    use kubewright::rbac;

    #[rbac(groups = "example.com", resources = "guestbooks", verbs = "patch")]
    pub(super) trait OnTrait {}

    impl OnTrait for super::Defaulter {}

    pub(super) fn on_trait(_: impl OnTrait) {}

    #[rbac(groups = "example.com", resources = "guestbooks", verbs = "delete")]
    mod on_module {}

    #[rbac(groups = "example.com", resources = "guestbooks", verbs = "create")]
    #[cfg(any())]
    struct NotCompiled;
}

#[webhook(
    name = "mguestbook-v1.kb.io",
    mutating = true,
    path = "/mutate-example-com-v1-guestbook",
    groups = "example.com",
    versions = "v1, v2",
    resources = "guestbooks",
    verbs = "create, update"
)]
impl AdmissionHandler for Defaulter {
    async fn handle(&self, _: &AdmissionRequest) -> AdmissionResponse {
        AdmissionResponse::allowed()
    }
}

struct Defaulter;

#[webhook(
    name = "vpod.example.com",
    mutating = false,
    url = "https://example.com:8443/pods",
    groups = "",
    versions = "*",
    resources = "pods, pods/*",
    verbs = "*",
    failure_policy = ignore,
    match_policy = "exact",
    side_effects = noneOnDryRun,
    timeout_seconds = 7,
    admission_review_versions = "v1, v1beta1",
    namespace_selector = r#"{"matchLabels": {"kubernetes.io/metadata.name": "default"}}"#,
    object_selector = { matchExpressions: [{ key: "app", operator: "In", values: ["web", ""] }] },
    match_conditions = [("no-nodes", "!('system:nodes' in request.userInfo.groups)")],
    configuration = "pods",
)]
fn validator() {}

#[webhook(
    name = "mpod.example.com", mutating = true, path = "/mutate--v1-pod", groups = "core", versions = "v1",
    resources = "pods", verbs = "create", reinvocation_policy = ifNeeded,
    service_name = "hooks", service_namespace = "system-hooks", service_port = 8443
)]
impl AdmissionHandler for WithService {
    async fn handle(&self, _: &AdmissionRequest) -> AdmissionResponse {
        AdmissionResponse::allowed()
    }
}

struct WithService;

#[webhook(verbs = "create, update, delete")]
impl Validator for ConfigMaps {
    type Object = ConfigMap;

    async fn validate_create(&self, _: &ConfigMap, _: &mut Validation<'_>) -> Result<(), Rejection> {
        Ok(())
    }
}

struct ConfigMaps;

fn all() -> Vec<Declared> {
    let declared = declare::all();
    declared
        .into_iter()
        .filter(|it| Path::new(&it.item().file).file_stem() == Path::new(FILE).file_stem())
        .collect()
}

fn rule(path: &str) -> Rule {
    let mut rules = rules(path);
    assert_eq!(rules.len(), 1, "{path}");
    rules.remove(0)
}

/// The rules of an item, without their location.
fn rules(path: &str) -> Vec<Rule> {
    let of_path = |declared: Declared| match declared {
        Declared::Rule(rule) if rule.item.path == format!("it::declare::{path}") => {
            Some(Rule { item: Item::default(), ..rule })
        }
        _ => None,
    };
    all().into_iter().filter_map(of_path).collect()
}

fn texts<const N: usize>(texts: [&str; N]) -> Vec<String> {
    texts.map(str::to_owned).into()
}

#[test]
fn rules_can_be_declared_on_every_kind_of_item() {
    let verbs = |path| rule(path).verbs.join(", ");
    assert_eq!(verbs("method"), "get");
    assert_eq!(verbs("associated"), "*");
    assert_eq!(verbs("on_function"), "update");
    assert_eq!(verbs("inner::OnTrait"), "patch");
    assert_eq!(verbs("inner::on_module"), "delete");
    // Code that is not compiled declares nothing.
    assert_eq!(rules("inner::NotCompiled"), []);
    // The attributes do not change the items.
    assert_eq!(OnStruct(OnStruct::<u8>::associated(7)).method(), 7);
    drop((on_function(), validator(), WithService, inner::on_trait(Defaulter)));
}

#[test]
fn a_rule_has_the_values_of_its_attribute() {
    // Two on the struct and one on its impl, in source order.
    let [first, second, third] = <[Rule; 3]>::try_from(rules("OnStruct")).unwrap();
    assert_eq!(
        first,
        Rule {
            groups: texts(["apps"]),
            resources: texts(["deployments", "deployments/scale"]),
            verbs: texts(["get", "list", "watch"]),
            ..Rule::default()
        }
    );
    assert_eq!(
        second,
        Rule {
            groups: texts(["", "batch"]),
            resources: texts(["pods", "jobs"]),
            verbs: texts(["create"]),
            namespace: "work".to_owned(),
            role_name: "worker".to_owned(),
            ..Rule::default()
        }
    );
    assert_eq!((third.groups, third.resource_names), (texts([""]), texts(["token", "key"])));
    assert_eq!(rule("method").urls, texts(["/metrics", "/healthz/*"]));
}

#[test]
fn a_declaration_has_the_line_of_its_attribute() {
    let source =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/declare.rs")).unwrap();
    let lines: Vec<&str> = source.lines().collect();
    let declared = all();
    assert_eq!(declared.len(), 12);
    for declared in declared {
        let Item { file, line, .. } = declared.item();
        assert_eq!(file, FILE);
        let line = lines[usize::try_from(*line).unwrap() - 1].trim();
        assert!(line.starts_with("#[rbac(") || line.starts_with("#[webhook("), "{line}");
    }
}

#[test]
fn a_webhook_has_the_values_of_its_attribute() {
    let elsewhere = all().into_iter().filter_map(|declared| match declared {
        Declared::Webhook(webhook) => Some(Webhook { item: Item::default(), ..*webhook }),
        _ => None,
    });
    let [validator] = <[Webhook; 1]>::try_from(elsewhere.collect::<Vec<_>>()).unwrap();
    let without_place = |webhook: Option<Webhook>| Webhook { item: Item::default(), ..webhook.unwrap() };
    let defaulter = without_place(<Defaulter as AdmissionHandler>::webhook());
    let with_service = without_place(<WithService as AdmissionHandler>::webhook());
    assert_eq!(
        defaulter,
        Webhook {
            name: "mguestbook-v1.kb.io".to_owned(),
            mutating: true,
            path: "/mutate-example-com-v1-guestbook".to_owned(),
            groups: texts(["example.com"]),
            versions: texts(["v1", "v2"]),
            resources: texts(["guestbooks"]),
            verbs: texts(["create", "update"]),
            admission_review_versions: texts(["v1"]),
            ..Webhook::default()
        }
    );
    let expression = json!({"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", ""]}]});
    assert_eq!(
        validator,
        Webhook {
            name: "vpod.example.com".to_owned(),
            url: "https://example.com:8443/pods".to_owned(),
            groups: texts([""]),
            versions: texts(["*"]),
            resources: texts(["pods", "pods/*"]),
            verbs: texts(["*"]),
            failure_policy: "ignore".to_owned(),
            match_policy: "exact".to_owned(),
            side_effects: "noneOnDryRun".to_owned(),
            timeout_seconds: Some(7),
            admission_review_versions: texts(["v1", "v1beta1"]),
            namespace_selector: Some(json!({"matchLabels": {"kubernetes.io/metadata.name": "default"}})),
            object_selector: Some(expression),
            match_conditions: vec![MatchCondition {
                name: "no-nodes".to_owned(),
                expression: "!('system:nodes' in request.userInfo.groups)".to_owned(),
            }],
            configuration: "pods".to_owned(),
            ..Webhook::default()
        }
    );
    let service = (with_service.service_name, with_service.service_namespace, with_service.service_port);
    assert_eq!(service, ("hooks".to_owned(), "system-hooks".to_owned(), Some(8443)));
    assert_eq!((with_service.reinvocation_policy.as_str(), with_service.groups), ("ifNeeded", texts([""])));
}

#[test]
fn the_attribute_of_a_handler_is_used_when_it_is_registered() {
    let handlers: Vec<(String, String)> = all()
        .into_iter()
        .filter_map(|declared| match declared {
            Declared::Handler(it) => Some((it.item.path, it.registration)),
            _ => None,
        })
        .collect();
    let handler = |name: &str, method: &str| (format!("it::declare::{name}"), method.to_owned());
    assert_eq!(
        handlers,
        [
            handler("Defaulter", "admission"),
            handler("WithService", "admission"),
            handler("ConfigMaps", "validator")
        ]
    );
    let webhook = ConfigMaps::webhook();
    assert_eq!(webhook.item.path, "it::declare::ConfigMaps");
    assert_eq!((webhook.verbs, webhook.path), (texts(["create", "update", "delete"]), String::new()));
}
