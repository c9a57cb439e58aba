//! Tests of adding and deleting webhooks.

use super::super::webhooks::{self, Removal, WebhookTypes};
use super::*;

fn types(text: &str) -> WebhookTypes {
    WebhookTypes {
        defaulting: text.contains('d'),
        validation: text.contains('v'),
        conversion: text.contains('c'),
    }
}

/// A request; `d`, `v` and `c` select defaulting, validation and conversion.
fn hooks(which: &str) -> webhooks::Request {
    webhooks::Request {
        group: "sales".into(),
        version: "v1".into(),
        kind: "Order".into(),
        types: types(which),
        spoke: if which.contains('c') { vec!["v2".into()] } else { Vec::new() },
        ..webhooks::Request::default()
    }
}

fn removal(which: &str) -> Removal {
    Removal {
        group: "sales".into(),
        version: "v1".into(),
        kind: "Order".into(),
        types: types(which),
        ..Removal::default()
    }
}

fn two_versions() -> ProjectFile {
    with(&with(&project(), &order()), &request("sales", "v2", "Order"))
}

/// Adds webhooks one after the other.
#[track_caller]
fn added(start: &ProjectFile, disk: &Disk, steps: &[&str]) -> (ProjectFile, Disk) {
    let (mut at, mut disk) = (start.clone(), disk.clone());
    for step in steps {
        let changed = webhooks::add(&at, &hooks(step)).unwrap();
        disk = apply(&disk, &changed);
        at = changed.after;
    }
    (at, disk)
}

#[test]
fn the_order_in_which_webhooks_are_added_does_not_matter() {
    let start = two_versions();
    let at_once = added(&start, &files(&start), &["dvc"]);
    assert_eq!(at_once.1, files(&at_once.0));
    for steps in [["d", "v", "c"], ["c", "v", "d"], ["v", "dc", "d"], ["dv", "c", "dvc"]] {
        assert_eq!(added(&start, &files(&start), &steps), at_once, "{steps:?}");
    }
    let text = at_once.0.to_text();
    let stanza = "  webhooks:\n    conversion: true\n    defaulting: true\n    spoke:\n    - v2\n    validation: true\n    \
                  webhookVersion: v1\n";
    assert!(text.contains(stanza), "{text}");
}

#[test]
fn deleted_webhooks_leave_no_trace() {
    let start = two_versions();
    let disk = files(&start);
    for (add, delete) in [
        (["dvc"].as_slice(), [""].as_slice()),
        (&["d", "v", "c"], &["d", "v", "c"]),
        (&["dv", "c"], &["c", "dv"]),
    ] {
        let (mut at, mut now) = added(&start, &disk, add);
        for which in delete {
            let changed = webhooks::remove(&at, &removal(which), &["v1".into()]).unwrap();
            now = apply(&now, &changed);
            at = changed.after;
        }
        assert_eq!((&at, &now), (&start, &disk), "{add:?} {delete:?}");
    }
}

#[test]
fn handler_code_stays_when_another_webhook_is_added_or_deleted() {
    let start = with(&project(), &order());
    let (at, mut disk) = added(&start, &files(&start), &["d"]);
    let handler = "src/webhooks/v1/order.rs";
    edited(&mut disk, handler, "_object: &mut Order", "object: &mut Order");
    edited(&mut disk, handler, "        Ok(())\n    }\n}\n", "        Ok(mine(object))\n    }\n}\n");
    let (both, after) = added(&at, &disk, &["v"]);
    assert!(after[handler].contains("Ok(mine(object))") && after[handler].contains("OrderValidator"));
    let changed = webhooks::remove(&both, &removal("v"), &[]).unwrap();
    assert_eq!(apply(&after, &changed), disk);
    // The modified file is not removed.
    let changed = webhooks::remove(&at, &removal("d"), &[]).unwrap();
    let refusal = plan_of(&disk, &changed, false).unwrap_err();
    assert_eq!(refusal, format!("{handler} would be removed, but has local changes"));
    assert_eq!(done(&disk, &plan_of(&disk, &changed, true).unwrap()), files(&start));
}

#[test]
fn force_recreates_webhooks() {
    let start = with(&project(), &order());
    let (at, mut disk) = added(&start, &files(&start), &["dv"]);
    edited(&mut disk, "src/webhooks/v1/order.rs", "Ok(())", "todo(());");
    let forced = webhooks::add(&at, &webhooks::Request { force: true, ..hooks("dv") }).unwrap();
    assert_eq!(forced.after, at);
    assert_eq!(done(&disk, &plan_of(&disk, &forced, true).unwrap()), files(&at));
    let again = webhooks::add(&at, &hooks("v")).unwrap();
    assert_eq!(again.before, again.after);
}

#[test]
fn fixtures_are_the_sample_with_crd_defaults() {
    let start = with(&project(), &order());
    let mut disk = files(&start);
    edited(&mut disk, "config/samples/sales_v1_order.yaml", "spec: {}", "spec:\n  amount: 3");
    edited(
        &mut disk,
        "config/crd/bases/sales.example.com_orders.yaml",
        "              foo:\n",
        "              size:\n                default: 2\n                type: integer\n              foo:\n",
    );
    let (_, after) = added(&start, &disk, &["dv"]);
    let folder = "tests/fixtures/webhooks/v1/order";
    let sample = &disk["config/samples/sales_v1_order.yaml"];
    assert_eq!(after[&format!("{folder}/default/sample.yaml")], *sample);
    assert_eq!(after[&format!("{folder}/valid/sample.yaml")], *sample);
    let expected = &after[&format!("{folder}/default/sample.expected.yaml")];
    assert!(expected.ends_with("spec:\n  amount: 3\n  size: 2\n"), "{expected}");
}

#[test]
fn webhooks_of_built_in_kinds_match_only_labeled_objects() {
    for (group, version, kind) in [("core", "v1", "Pod"), ("apps", "v1", "Deployment")] {
        let wanted = webhooks::Request {
            group: group.into(),
            version: version.into(),
            kind: kind.into(),
            ..hooks("dv")
        };
        let changed = webhooks::add(&project(), &wanted).unwrap();
        let files = apply(&files(&project()), &changed);
        assert_eq!(files, super::files(&changed.after));
        let manifests = &files["config/webhook/manifests.yaml"];
        let selector = "  objectSelector:\n    matchLabels:\n      example.com/shop: enabled\n";
        assert_eq!(manifests.matches(selector).count(), 2, "{manifests}");
        let (lower, module) = (kind.to_lowercase(), names::module(kind));
        let fixture = &files[&format!("tests/fixtures/webhooks/v1/{module}/valid/sample.yaml")];
        assert!(fixture.contains("example.com/shop: enabled\n"), "{lower}: {fixture}");
        let gone = Removal { group: group.into(), kind: kind.into(), ..removal("") };
        let changed = webhooks::remove(&changed.after, &gone, &[]).unwrap();
        assert_eq!(changed.after, project());
        assert_eq!(apply(&files, &changed), super::files(&project()));
    }
}

#[test]
fn the_multigroup_layout_moves_webhooks() {
    let start = with(&project(), &order());
    let (at, mut disk) = added(&start, &files(&start), &["dv"]);
    edited(&mut disk, "src/webhooks/v1/order.rs", "// Report", "// Mine: report");
    let many = ProjectFile { multigroup: true, ..at.clone() };
    let moved = done(&disk, &plan(&disk, &at, &many, false).unwrap());
    let handler = &moved["src/webhooks/sales/v1/order.rs"];
    assert!(handler.contains("// Mine: report") && handler.contains("use crate::api::sales::v1::Order;"));
    assert!(moved.contains_key("tests/fixtures/webhooks/sales/v1/order/valid/sample.yaml"));
    assert_eq!(done(&moved, &plan(&moved, &many, &at, false).unwrap()), disk);
}

#[test]
fn webhooks_of_two_groups_have_different_names() {
    let mut project = ProjectFile { multigroup: true, ..project() };
    for group in ["sales", "stock"] {
        project = with(&project, &request(group, "v1", "Order"));
        let wanted = webhooks::Request { group: group.into(), ..hooks("dv") };
        project = webhooks::add(&project, &wanted).unwrap().after;
    }
    let files = files(&project);
    assert!(files["src/webhooks/stock/v1/order.rs"].contains("#[webhook(name = \"vorder-v1.stock.kb.io\")]"));
    for name in ["morder-v1.kb.io", "vorder-v1.kb.io", "morder-v1.stock.kb.io", "vorder-v1.stock.kb.io"] {
        let manifests = &files["config/webhook/manifests.yaml"];
        assert_eq!(manifests.matches(&format!("name: {name}\n")).count(), 1, "{manifests}");
    }
}

#[test]
fn a_path_can_be_set_and_changed() {
    let start = with(&project(), &order());
    let (at, disk) = added(&start, &files(&start), &["v"]);
    let chosen = webhooks::Request { validation_path: Some("/check-orders".into()), ..hooks("v") };
    let changed = webhooks::add(&at, &chosen).unwrap();
    let disk = apply(&disk, &changed);
    assert!(disk["src/webhooks/v1/order.rs"].contains("#[webhook(path = \"/check-orders\")]\n"));
    assert!(disk["config/webhook/manifests.yaml"].contains("path: /check-orders\n"));
    assert!(disk["PROJECT"].contains("    validationPath: /check-orders\n"));
    assert_eq!(webhooks::add(&changed.after, &hooks("v")).unwrap().after, changed.after);
    let second = webhooks::Request { defaulting_path: Some("/check-orders".into()), ..hooks("d") };
    assert!(webhooks::add(&changed.after, &second).is_err());
}

#[test]
fn invalid_requests_are_rejected() {
    let (one, two) = (with(&project(), &order()), two_versions());
    let hub = webhooks::add(&two, &hooks("c")).unwrap().after;
    let refused = |project: &ProjectFile, request: webhooks::Request| {
        let error = webhooks::add(project, &request).unwrap_err();
        error.chain().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    };
    let deployment = webhooks::Request { group: "apps".into(), kind: "Deployment".into(), ..hooks("c") };
    let told = [
        refused(&one, hooks("")),
        refused(&project(), hooks("v")),
        refused(&one, webhooks::Request { defaulting_path: Some("/a".into()), ..hooks("v") }),
        refused(&one, webhooks::Request { validation_path: Some("A".into()), ..hooks("v") }),
        refused(&one, webhooks::Request { spoke: vec!["v2".into()], ..hooks("v") }),
        refused(&one, hooks("c")),
        refused(&two, webhooks::Request { spoke: Vec::new(), ..hooks("c") }),
        refused(&two, webhooks::Request { spoke: vec!["v1".into()], ..hooks("c") }),
        refused(&hub, webhooks::Request { version: "v2".into(), spoke: vec!["v1".into()], ..hooks("c") }),
        refused(&one, deployment),
        refused(&one, webhooks::Request { plural: Some("orderz".into()), ..hooks("v") }),
        said(&remove(&hub, "sales", "v2", "Order").unwrap_err()),
        said(&remove(&hub, "sales", "v1", "Order").unwrap_err()),
    ];
    insta::assert_snapshot!(told.join("\n"), @r"
    no webhook selected
    sales/v1, Order is not in this project
    --defaulting-path requires --defaulting
    the path `A` must look like /mutate-order: `/`, then lowercase letters, digits, `-` and `.`
    --spoke requires --conversion
    Order has no version v2
    a conversion needs --spoke
    v1 is the hub and cannot be a spoke
    Order already has the hub v1
    apps/v1, Deployment is not defined by this project; only its own kinds can be converted
    the plural of sales.example.com/v1, Order is orders, not orderz
    sales.example.com/v2, Order is a spoke of the conversion of v1
    sales.example.com/v1, Order has webhooks
    ");
}

#[test]
fn a_conversion_is_not_deleted_while_both_versions_are_served() {
    let hub = webhooks::add(&two_versions(), &hooks("c")).unwrap().after;
    let both = ["v1".to_owned(), "v2".to_owned()];
    let error = webhooks::remove(&hub, &removal("c"), &both).unwrap_err();
    assert_eq!(
        said(&error),
        "Order is served as v1 and v2; without conversion, fields that differ would be lost"
    );
    let forced = Removal { force: true, ..removal("c") };
    assert_eq!(webhooks::remove(&hub, &forced, &both).unwrap().after, two_versions());
    assert!(webhooks::remove(&hub, &removal(""), &both).is_err());
    assert_eq!(webhooks::remove(&hub, &removal(""), &both[1..]).unwrap().after, two_versions());
    for wrong in [removal("d"), Removal { version: "v2".into(), ..removal("") }] {
        assert!(webhooks::remove(&hub, &wrong, &[]).is_err());
    }
}

#[test]
fn a_spoke_can_be_added_and_deleted_alone() {
    let three = with(&two_versions(), &request("sales", "v1beta1", "Order"));
    let spokes = |project: &ProjectFile| project.resources[0].webhooks().unwrap().spoke.join(" ");
    let one = webhooks::add(&three, &hooks("c")).unwrap().after;
    let older = webhooks::Request { spoke: vec!["v1beta1".into()], ..hooks("c") };
    let both = webhooks::add(&one, &older).unwrap().after;
    assert_eq!(spokes(&both), "v1beta1 v2");
    let gone = Removal { spoke: vec!["v1beta1".into()], ..removal("c") };
    assert_eq!(webhooks::remove(&both, &gone, &[]).unwrap().after, one);
}

#[test]
fn cert_manager_can_be_enabled_and_disabled() {
    use crate::project::project_file::WebhookCerts;
    let start = two_versions();
    let (own, disk) = added(&start, &files(&start), &["dvc"]);
    for certs in [WebhookCerts::CertManager, WebhookCerts::Files, WebhookCerts::None] {
        let mut other = own.clone();
        other.set_webhook_certs(certs);
        assert_eq!(other.webhook_certs(), certs);
        let changed = done(&disk, &plan(&disk, &own, &other, false).unwrap());
        assert_eq!(changed, files(&other));
        assert_eq!(
            changed.contains_key("config/certmanager/issuer.yaml"),
            certs == WebhookCerts::CertManager
        );
        // Only certificates of the manager itself need permissions.
        let certificates = "config/rbac/webhook_certificates_role.yaml";
        assert!(disk.contains_key(certificates) && !changed.contains_key(certificates));
        let injects = |disk: &Disk| disk["config/rbac/role.yaml"].contains("admissionregistration.k8s.io");
        assert!(injects(&disk) && !injects(&changed));
        assert_eq!(done(&changed, &plan(&changed, &other, &own, false).unwrap()), disk);
        other.set_webhook_certs(WebhookCerts::SelfSigned);
        assert_eq!(other, own);
    }
}

#[test]
fn an_external_kind_gets_webhooks_without_a_controller() {
    let external = External { path: "certs::v1".into(), domain: "io".into(), module: "certs@1.2".into() };
    let start = project();
    let request = webhooks::Request {
        group: "cert-manager".into(),
        version: "v1".into(),
        kind: "Certificate".into(),
        external: Some(external),
        ..hooks("dv")
    };
    let changed = webhooks::add(&start, &request).unwrap();
    let disk = apply(&files(&start), &changed);
    assert_eq!(disk, files(&changed.after));
    assert!(disk["Cargo.toml"].contains("[dependencies.certs]\nversion = \"1.2\"\n"));
    let handler = &disk["src/webhooks/v1/certificate.rs"];
    assert!(handler.contains("use certs::v1::Certificate;"), "{handler}");
    assert!(!disk.contains_key("src/controllers/certificate.rs"));
    let manifests = &disk["config/webhook/manifests.yaml"];
    assert!(manifests.contains("/validate-cert-manager-io-v1-certificate"), "{manifests}");
    let test = &disk["tests/it/certificate_v1_webhook.rs"];
    assert!(test.contains("async fn the_webhooks_start_and_stop()"), "{test}");
    // The project has no CRD for it.
    assert!(disk.keys().all(|path| !path.starts_with("config/crd/bases/")));

    let all = Removal { group: "cert-manager".into(), kind: "Certificate".into(), ..removal("") };
    let removed = webhooks::remove(&changed.after, &all, &[]).unwrap();
    assert_eq!(removed.after, start);
    assert_eq!(apply(&disk, &removed), files(&start));
}

#[test]
fn an_imported_kubebuilder_project_keeps_its_conversion() {
    let entry = |version: &str, webhooks: &str| {
        format!(
            "- {{api: {{crdVersion: v1, namespaced: true}}, domain: example.com, group: sales, kind: Order, \
             path: example.com/shop/api/{version}, version: {version}{webhooks}}}\n"
        )
    };
    let hub =
        ", controller: true, webhooks: {conversion: true, spoke: [v2], validation: true, webhookVersion: v1}";
    let text = format!(
        "domain: example.com\nlayout: [go.kubebuilder.io/v4]\nprojectName: shop\nrepo: example.com/shop\n\
         resources:\n{}{}version: \"3\"\n",
        entry("v1", hub),
        entry("v2", "")
    );
    let (ours, left) = adopt(&ProjectFile::read(&text).unwrap(), &[]);
    add::check_project(&ours).unwrap();
    assert!(left.iter().all(|left| !left.starts_with("conversion")), "{left:?}");
    let webhooks = ours.resources[0].webhooks().unwrap();
    assert!(webhooks.conversion && webhooks.validation);
    assert_eq!(webhooks.spoke, ["v2"]);
    let files = files(&ours);
    assert!(files.contains_key("src/webhooks/v1/order_conversion.rs"));
    assert!(files["config/crd/bases/sales.example.com_orders.yaml"].contains("strategy: Webhook"));
    assert!(files["src/registry.rs"].contains("order_conversion"));
}
