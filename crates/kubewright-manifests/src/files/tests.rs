//! Plans, and their comparison with the disk.

use serde_json::json;

use super::*;
use crate::declare::{Declared, Rule, Webhook};

fn operator() -> (Inventory, Vec<(String, Value)>) {
    let mut inventory = Inventory::new("guestbook");
    let words = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
    inventory.declared = vec![
        Declared::Rule(Rule {
            groups: words(&[""]),
            resources: words(&["pods"]),
            verbs: words(&["get"]),
            ..Rule::default()
        }),
        Declared::Rule(Rule {
            groups: words(&[""]),
            resources: words(&["secrets"]),
            verbs: words(&["get"]),
            namespace: "infra".into(),
            ..Rule::default()
        }),
        Declared::Webhook(Box::new(Webhook { name: "v.example.com".into(), ..Webhook::default() })),
    ];
    let definition = json!({ "kind": "CustomResourceDefinition" });
    (inventory, vec![("example.com_guestbooks.yaml".into(), definition)])
}

fn paths(files: &Files) -> Vec<&str> {
    files.keys().map(String::as_str).collect()
}

#[test]
fn a_plan_has_crds_roles_and_webhooks() {
    let (inventory, crds) = operator();
    let plan = Plan::new(&inventory, &crds, "");
    assert_eq!(
        paths(plan.files()),
        ["config/crd/bases/example.com_guestbooks.yaml", ROLE_NAMESPACES, ROLES, WEBHOOKS]
    );
    insta::assert_snapshot!(plan.files()[ROLES], @r#"
    ---
    apiVersion: rbac.authorization.k8s.io/v1
    kind: ClusterRole
    metadata:
      name: manager-role
    rules:
    - apiGroups:
      - ""
      resources:
      - pods
      verbs:
      - get
    ---
    apiVersion: rbac.authorization.k8s.io/v1
    kind: Role
    metadata:
      name: manager-role-infra
      namespace: infra
    rules:
    - apiGroups:
      - ""
      resources:
      - secrets
      verbs:
      - get
    ---
    apiVersion: rbac.authorization.k8s.io/v1
    kind: RoleBinding
    metadata:
      name: manager-role-infra
      namespace: infra
    roleRef:
      apiGroup: rbac.authorization.k8s.io
      kind: Role
      name: manager-role-infra
    subjects:
    - kind: ServiceAccount
      name: controller-manager
      namespace: system
    "#);
}

#[test]
fn the_kustomization_lists_the_transformers_as_long_as_there_are_any() {
    let (mut inventory, crds) = operator();
    let kustomization = "namePrefix: guestbook-\nresources: []\n".to_owned();
    let mut disk = Files::from([(KUSTOMIZATION.to_owned(), kustomization.clone())]);
    let changes = Plan::new(&inventory, &crds, "").against(&disk);
    assert!(changes.write[KUSTOMIZATION].contains("transformers:\n- role_namespaces.yaml\n"));
    disk.extend(changes.write);
    assert!(Plan::new(&inventory, &crds, "").against(&disk).is_empty());
    inventory.declared.remove(1);
    let changes = Plan::new(&inventory, &crds, "").against(&disk);
    assert_eq!(changes.write[KUSTOMIZATION], kustomization);
    assert_eq!(changes.stale, [ROLE_NAMESPACES]);
}

#[test]
fn without_webhooks_there_is_no_file_for_them() {
    let (mut inventory, crds) = operator();
    inventory.declared.pop();
    let plan = Plan::new(&inventory, &crds, "");
    assert!(!plan.files().contains_key(WEBHOOKS));
}

#[test]
fn a_header_is_written_first_as_a_comment() {
    let (inventory, crds) = operator();
    let plan = Plan::new(&inventory, &crds, "# Copyright\n\nThe authors\n");
    for text in plan.files().values() {
        assert!(text.starts_with("# Copyright\n\n# The authors\n---\n"), "{text}");
    }
}

#[test]
fn a_second_run_changes_nothing() {
    let (inventory, crds) = operator();
    let plan = Plan::new(&inventory, &crds, "");
    let mut disk = plan.files().clone();
    disk.insert("config/crd/kustomization.yaml".into(), "resources: []".into());
    let changes = plan.against(&disk);
    assert!(changes.is_empty());
    assert_eq!(changes.unchanged.len(), 4);
}

#[test]
fn only_changed_files_are_written() {
    let (mut inventory, crds) = operator();
    let disk = Plan::new(&inventory, &crds, "").files().clone();
    if let Declared::Rule(rule) = &mut inventory.declared[0] {
        rule.verbs.push("list".into());
    }
    let changes = Plan::new(&inventory, &crds, "").against(&disk);
    assert_eq!(paths(&changes.write), [ROLES]);
}

#[test]
fn stale_files_are_reported_and_kept() {
    let (mut inventory, crds) = operator();
    let mut disk = Plan::new(&inventory, &crds, "").files().clone();
    disk.insert("config/crd/bases/example.com_books.yaml".into(), String::new());
    disk.insert("config/crd/bases/README.md".into(), String::new());
    inventory.declared.clear();
    let changes = Plan::new(&inventory, &crds, "").against(&disk);
    assert_eq!(changes.stale, ["config/crd/bases/example.com_books.yaml", ROLE_NAMESPACES, ROLES, WEBHOOKS]);
    assert!(!changes.is_empty() && changes.write.is_empty());
    let findings: Vec<String> = changes.findings(&inventory).iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(findings.join("\n"), @"
    warning[KW501] guestbook: config/crd/bases/example.com_books.yaml: no kind of the operator produces this file: it was renamed or removed, or is not in `crds!`, and the file would still be applied
      help: remove the file, or add the kind to `crds!`
    warning[KW501] guestbook: config/default/role_namespaces.yaml: the operator needs no Role in another namespace
      help: remove the file, or declare one with `#[rbac(namespace = ..)]`
    warning[KW501] guestbook: config/rbac/role.yaml: the operator declares no RBAC rules
      help: remove the file, or declare them with `#[rbac]`
    warning[KW501] guestbook: config/webhook/manifests.yaml: the operator declares no webhooks
      help: remove the file, or declare them with `#[webhook]`
    ");
}

#[test]
fn leader_election_and_secure_metrics_have_separate_role_files() {
    let (mut inventory, crds) = operator();
    inventory.leader_election = true;
    inventory.secure_metrics = true;
    let plan = Plan::new(&inventory, &crds, "");
    for (path, right) in [
        (LEADER_ELECTION, "leases"),
        (METRICS_AUTH, "tokenreviews"),
        (METRICS_READER, "/metrics"),
        (DEBUG_PAGE_READER, "/debug/page"),
    ] {
        assert!(plan.files()[path].contains(right), "{path}: {:?}", plan.files());
    }
}
