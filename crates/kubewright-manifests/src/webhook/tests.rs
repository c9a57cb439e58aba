//! Generated webhook configurations.

use super::*;
use crate::declare::MatchCondition;

fn webhook(name: &str, mutating: bool) -> Webhook {
    Webhook {
        name: name.into(),
        mutating,
        path: "/validate-example-com-v1-guestbook".into(),
        groups: vec!["example.com".into()],
        versions: vec!["v1".into()],
        resources: vec!["guestbooks".into()],
        verbs: vec!["create".into(), "UPDATE".into()],
        failure_policy: "fail".into(),
        side_effects: "none".into(),
        admission_review_versions: vec!["v1".into()],
        ..Webhook::default()
    }
}

fn printed(webhooks: &[Webhook]) -> String {
    crate::yaml::documents(&configurations(webhooks))
}

#[test]
fn a_default_webhook_equals_that_of_controller_gen() {
    insta::assert_snapshot!(printed(&[webhook("vguestbook.example.com", false)]), @r"
    ---
    apiVersion: admissionregistration.k8s.io/v1
    kind: ValidatingWebhookConfiguration
    metadata:
      name: validating-webhook-configuration
    webhooks:
    - admissionReviewVersions:
      - v1
      clientConfig:
        service:
          name: webhook-service
          namespace: system
          path: /validate-example-com-v1-guestbook
      failurePolicy: Fail
      name: vguestbook.example.com
      rules:
      - apiGroups:
        - example.com
        apiVersions:
        - v1
        operations:
        - CREATE
        - UPDATE
        resources:
        - guestbooks
      sideEffects: None
    ");
}

#[test]
fn every_field_is_written() {
    let full = Webhook {
        groups: vec!["core".into()],
        match_policy: "equivalent".into(),
        side_effects: "noneOnDryRun".into(),
        timeout_seconds: Some(5),
        reinvocation_policy: "ifneeded".into(),
        service_name: "hooks".into(),
        service_namespace: "infra".into(),
        service_port: Some(9443),
        namespace_selector: Some(json!({ "matchLabels": { "watched": "yes" } })),
        object_selector: Some(json!({ "matchExpressions": [{ "key": "off", "operator": "DoesNotExist" }] })),
        match_conditions: vec![MatchCondition { name: "no-nodes".into(), expression: "true".into() }],
        configuration: "own".into(),
        ..webhook("mguestbook.example.com", true)
    };
    insta::assert_snapshot!(printed(&[full]), @r#"
    ---
    apiVersion: admissionregistration.k8s.io/v1
    kind: MutatingWebhookConfiguration
    metadata:
      name: own
    webhooks:
    - admissionReviewVersions:
      - v1
      clientConfig:
        service:
          name: hooks
          namespace: infra
          path: /validate-example-com-v1-guestbook
          port: 9443
      failurePolicy: Fail
      matchConditions:
      - expression: "true"
        name: no-nodes
      matchPolicy: Equivalent
      name: mguestbook.example.com
      namespaceSelector:
        matchLabels:
          watched: "yes"
      objectSelector:
        matchExpressions:
        - key: "off"
          operator: DoesNotExist
      reinvocationPolicy: IfNeeded
      rules:
      - apiGroups:
        - ""
        apiVersions:
        - v1
        operations:
        - CREATE
        - UPDATE
        resources:
        - guestbooks
      sideEffects: NoneOnDryRun
      timeoutSeconds: 5
    "#);
}

#[test]
fn a_webhook_on_another_server_has_a_url() {
    let elsewhere = Webhook {
        path: String::new(),
        url: "https://hooks.example.com/v".into(),
        ..webhook("v.example.com", false)
    };
    let configurations = configurations([&elsewhere]);
    assert_eq!(
        configurations[0]["webhooks"][0]["clientConfig"],
        json!({ "url": "https://hooks.example.com/v" })
    );
}

#[test]
fn webhooks_are_sorted_by_configuration_and_name() {
    let own = Webhook { configuration: "a-configuration".into(), ..webhook("z.example.com", false) };
    let webhooks = [
        webhook("b.example.com", false),
        webhook("m.example.com", true),
        own,
        webhook("a.example.com", false),
    ];
    let names = |webhooks: &[Webhook]| {
        let line = |configuration: &Value| {
            let names = configuration["webhooks"].as_array().into_iter().flatten().map(|hook| &hook["name"]);
            let names: Vec<String> = names.map(ToString::to_string).collect();
            format!("{}: {}", configuration["metadata"]["name"], names.join(" "))
        };
        configurations(webhooks).iter().map(line).collect::<Vec<_>>().join("\n")
    };
    insta::assert_snapshot!(names(&webhooks), @r#"
    "mutating-webhook-configuration": "m.example.com"
    "a-configuration": "z.example.com"
    "validating-webhook-configuration": "a.example.com" "b.example.com"
    "#);
    let reversed: Vec<Webhook> = webhooks.iter().rev().cloned().collect();
    assert_eq!(names(&webhooks), names(&reversed));
}

#[test]
fn an_api_service_names_the_webhook_service_and_has_no_ca() {
    let api =
        |group: &str, version: &str| ApiServiceDeclared { group: group.into(), version: version.into() };
    let objects = api_services(&[api("prices.example.com", "v1"), api("metrics.example.com", "v1beta1")]);
    insta::assert_snapshot!(crate::yaml::documents(&objects), @r"
    ---
    apiVersion: apiregistration.k8s.io/v1
    kind: APIService
    metadata:
      name: v1beta1.metrics.example.com
    spec:
      group: metrics.example.com
      groupPriorityMinimum: 1000
      service:
        name: webhook-service
        namespace: system
      version: v1beta1
      versionPriority: 100
    ---
    apiVersion: apiregistration.k8s.io/v1
    kind: APIService
    metadata:
      name: v1.prices.example.com
    spec:
      group: prices.example.com
      groupPriorityMinimum: 1000
      service:
        name: webhook-service
        namespace: system
      version: v1
      versionPriority: 100
    ");
}
