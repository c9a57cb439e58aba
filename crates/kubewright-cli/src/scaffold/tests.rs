//! Tests of rendering and planning, with files in memory.

mod builtin;
mod format;
mod labels;
mod webhooks;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::Path;

use super::add::{Changed, External, Request, add, remove};
use super::*;
use crate::project::project_file::{ProjectFile, Resource};

type Disk = BTreeMap<String, String>;

fn project() -> ProjectFile {
    ProjectFile::new("example.com", "shop")
}

fn request(group: &str, version: &str, kind: &str) -> Request {
    Request { group: group.into(), version: version.into(), kind: kind.into(), ..Request::default() }
}

fn order() -> Request {
    request("sales", "v1", "Order")
}

#[track_caller]
fn with(project: &ProjectFile, request: &Request) -> ProjectFile {
    add(project, request).unwrap().after
}

fn files(project: &ProjectFile) -> Disk {
    render(project, &Options::default()).into_values().map(|file| (file.path, file.text)).collect()
}

fn plan(disk: &Disk, before: &ProjectFile, after: &ProjectFile, force: bool) -> Result<Plan, String> {
    let changed = Changed { before: before.clone(), after: after.clone(), copied: None };
    plan_of(disk, &changed, force)
}

fn plan_of(disk: &Disk, changed: &Changed, force: bool) -> Result<Plan, String> {
    let read = |path: &str| Ok::<_, Infallible>(disk.get(path).cloned());
    let Ok((before, after)) = renderings(changed, &Options::default(), read);
    let Ok(plan) = Plan::new(&before, &after, read, force);
    plan.map_err(|refusal| refusal.to_string())
}

/// Applies a plan to the files.
fn done(disk: &Disk, plan: &Plan) -> Disk {
    let mut disk = disk.clone();
    for step in &plan.steps {
        match &step.after {
            Some(text) => disk.insert(step.path.clone(), text.clone()),
            None => disk.remove(&step.path),
        };
    }
    disk
}

#[track_caller]
fn apply(disk: &Disk, changed: &Changed) -> Disk {
    done(disk, &plan_of(disk, changed, false).unwrap())
}

fn edited(disk: &mut Disk, path: &str, from: &str, to: &str) {
    let text = disk.get_mut(path).unwrap_or_else(|| panic!("no {path}"));
    assert!(text.contains(from), "{path} has no {from}:\n{text}");
    *text = text.replace(from, to);
}

fn said(error: &anyhow::Error) -> String {
    error.to_string()
}

#[test]
fn adding_kinds_step_by_step_equals_rendering_at_once() {
    let mut disk = files(&project());
    let mut at = project();
    for request in [
        order(),
        request("sales", "v1", "Customer"),
        request("sales", "v2", "Order"),
        Request { controller_name: Some("order-backup".into()), ..order() },
        Request { resource: Some(false), ..request("apps", "v1", "Deployment") },
    ] {
        let changed = add(&at, &request).unwrap();
        disk = apply(&disk, &changed);
        at = changed.after;
        assert_eq!(disk, files(&at), "after {request:?}");
    }
    for (version, kind, group) in
        [("v2", "Order", "sales"), ("v1", "Deployment", "apps"), ("v1", "Customer", "sales")]
    {
        let changed = remove(&at, group, version, kind).unwrap();
        disk = apply(&disk, &changed);
        at = changed.after;
    }
    let changed = remove(&at, "sales", "v1", "Order").unwrap();
    assert_eq!(apply(&disk, &changed), files(&project()));
}

#[test]
fn the_old_storage_version_and_the_controller_stay_when_a_version_is_added() {
    for added in ["v2", "v1alpha1"] {
        let both = with(&with(&project(), &order()), &request("sales", added, "Order"));
        let files = files(&both);
        assert!(files[&format!("src/api/{added}/order.rs")].contains("storage = false"));
        assert!(!files["src/api/v1/order.rs"].contains("storage"));
        assert!(files["src/controllers/order.rs"].contains("use crate::api::v1::Order;"));
        let crd = &files["config/crd/bases/sales.example.com_orders.yaml"];
        assert_eq!(crd.matches("storage: true").count(), 1);
        assert!(files["PROJECT"].contains("storageVersions:\n      Order.sales.example.com: v1\n"));
    }
}

#[test]
fn the_storage_version_changes_only_on_request() {
    let both = with(&with(&project(), &order()), &request("sales", "v2", "Order"));
    let mut disk = files(&both);
    edited(&mut disk, "src/api/v1/order.rs", "pub foo: Option<String>", "pub amount: i64");
    edited(&mut disk, "src/api/v2/order.rs", "pub foo: Option<String>", "pub amount: i64");
    let changed = add::store(&both, "sales", "Order", "v2").unwrap();
    let after = apply(&disk, &changed);
    assert!(after["src/api/v1/order.rs"].contains("storage = false,\n"));
    assert!(after["src/api/v1/order.rs"].contains("pub amount: i64"));
    assert!(!after["src/api/v2/order.rs"].contains("storage"));
    assert!(after["PROJECT"].contains("Order.sales.example.com: v2\n"));
    let told = [
        add::store(&both, "sales", "Order", "v3").unwrap_err(),
        add::store(&both, "stock", "Order", "v2").unwrap_err(),
        remove(&both, "sales", "v1", "Order").unwrap_err(),
    ];
    insta::assert_snapshot!(told.map(|error| said(&error)).join("\n"), @"
    Order has no version v3
    this project does not define the kind Order in the group stock
    sales.example.com/v1, Order is the storage version of Order
    ");
}

#[test]
fn a_new_version_copies_the_storage_version_from_disk() {
    let one = with(&project(), &order());
    let mut disk = files(&one);
    let foo =
        "    #[serde(default, skip_serializing_if = \"Option::is_none\")]\n    pub foo: Option<String>,\n";
    let own = "    pub amount: i64,\n    pub address: super::Address,\n";
    edited(&mut disk, "src/api/v1/order.rs", foo, own);
    edited(&mut disk, "config/samples/sales_v1_order.yaml", "spec: {}", "spec:\n  amount: 3");
    let crd = "config/crd/bases/sales.example.com_orders.yaml";
    edited(&mut disk, crd, "              foo:\n", "              amount:\n");

    let changed = add(&one, &request("sales", "v2", "Order")).unwrap();
    let after = apply(&disk, &changed);
    let v1 = &disk["src/api/v1/order.rs"];
    let expected = v1
        .replace("version v1 of", "version v2 of")
        .replace("version = \"v1\"", "version = \"v2\"")
        .replace("    namespaced,\n", "    storage = false,\n    namespaced,\n")
        .replace("super::Address", "crate::api::v1::Address");
    assert_eq!(after["src/api/v2/order.rs"], expected);
    assert_eq!(after["src/api/v1/order.rs"], *v1);
    let sample = &after["config/samples/sales_v2_order.yaml"];
    assert!(
        sample.contains("apiVersion: sales.example.com/v2\n") && sample.contains("amount: 3"),
        "{sample}"
    );
    // The CRD on disk was generated from the compiled operator; the new version gets the old schema.
    let crd: serde_json::Value = serde_saphyr::from_str(&after[crd]).unwrap();
    let versions = crd["spec"]["versions"].as_array().unwrap();
    let told =
        |at: usize| (versions[at]["name"].as_str().unwrap(), versions[at]["storage"].as_bool().unwrap());
    assert_eq!([told(0), told(1)], [("v1", true), ("v2", false)]);
    assert_eq!(versions[0]["schema"], versions[1]["schema"]);
    assert!(versions[1]["schema"].to_string().contains("amount"));

    // A hand-written attribute is renamed too.
    let mut rewritten = files(&one);
    let types = rewritten.get_mut("src/api/v1/order.rs").unwrap();
    *types =
        "#[kube(group = \"sales.example.com\", version = \"v1\", kind = \"Order\")]\nstruct OrderSpec;\n"
            .into();
    let after = apply(&rewritten, &changed);
    assert!(after["src/api/v2/order.rs"].contains("version = \"v2\", storage = false, kind"));
}

#[test]
fn user_changes_are_merged() {
    let one = with(&project(), &order());
    let mut disk = files(&one);
    edited(&mut disk, "src/controllers.rs", "pub mod order;", "mod money;\npub mod order;");
    edited(&mut disk, "src/api/v1/order.rs", "pub foo: Option<String>", "pub amount: i64");
    edited(
        &mut disk,
        "config/default/kustomization.yaml",
        "- metrics_service.yaml",
        "- metrics_service.yaml\n- mine.yaml",
    );
    let changed = add(&one, &request("sales", "v2", "Order")).unwrap();
    let after = apply(&disk, &changed);
    assert!(after["src/controllers.rs"].contains("mod money;"));
    let types = &after["src/api/v2/order.rs"];
    assert!(types.contains("pub amount: i64") && types.contains("storage = false"), "{types}");
    assert!(after["config/default/kustomization.yaml"].contains("- mine.yaml"));
}

#[test]
fn conflicts_are_rejected_unless_forced() {
    let one = with(&project(), &order());
    let mut disk = files(&one);
    edited(&mut disk, "src/registry.rs", "controllers::order::register(manager)?;", "mine(manager)?;");
    edited(&mut disk, "src/api/v1/order.rs", "foo", "bar");
    let changed = remove(&one, "sales", "v1", "Order").unwrap();
    let refusal = plan(&disk, &changed.before, &changed.after, false).unwrap_err();
    insta::assert_snapshot!(refusal, @"
    src/registry.rs has local changes near line 11 that cannot be merged
    src/api/v1/order.rs would be removed, but has local changes
    ");
    let forced = plan(&disk, &changed.before, &changed.after, true).unwrap();
    assert_eq!(done(&disk, &forced), files(&project()));
}

#[test]
fn generated_files_with_changes_are_left_to_manifests() {
    let one = with(&project(), &order());
    let mut disk = files(&one);
    edited(&mut disk, "config/crd/bases/sales.example.com_orders.yaml", "foo:", "amount:");
    edited(&mut disk, "config/rbac/role.yaml", "- watch", "- watch\n  - delete");
    let changed = add(&one, &request("sales", "v2", "Order")).unwrap();
    let plan = plan(&disk, &changed.before, &changed.after, false).unwrap();
    let definition = "config/crd/bases/sales.example.com_orders.yaml";
    assert_eq!(
        plan.notes,
        [format!("{definition} no longer matches the templates: run `kubewright manifests`")]
    );
    assert_eq!(done(&disk, &plan)[definition], disk[definition]);
}

#[test]
fn existing_files_are_not_overwritten() {
    let changed = add(&project(), &order()).unwrap();
    let mut disk = files(&project());
    disk.insert("src/controllers/order.rs".into(), "// mine\n".into());
    let refusal = plan(&disk, &changed.before, &changed.after, false).unwrap_err();
    assert_eq!(refusal, "src/controllers/order.rs already exists");
}

#[test]
fn an_interrupted_command_can_be_repeated() {
    let changed = add(&project(), &order()).unwrap();
    let disk = files(&project());
    let plan = plan(&disk, &changed.before, &changed.after, false).unwrap();
    assert_eq!(plan.steps.last().unwrap().path, "PROJECT");
    for steps in 0..plan.steps.len() {
        let half = Plan { steps: plan.steps[..steps].iter().map(again).collect(), notes: Vec::new() };
        let half = done(&disk, &half);
        assert_eq!(apply(&half, &changed), files(&changed.after), "after {steps} steps");
    }
}

fn again(step: &plan::Step) -> plan::Step {
    plan::Step { path: step.path.clone(), before: step.before.clone(), after: step.after.clone() }
}

#[test]
fn the_multigroup_layout_keeps_user_changes_both_ways() {
    let one = with(&project(), &order());
    let mut disk = files(&one);
    edited(&mut disk, "src/controllers/order.rs", "\"Reconciling\"", "\"at it\"");
    let many = ProjectFile { multigroup: true, ..one.clone() };
    let moved = done(&disk, &plan(&disk, &one, &many, false).unwrap());
    let controller = &moved["src/controllers/sales/order.rs"];
    assert!(controller.contains("\"at it\"") && controller.contains("use crate::api::sales::v1::Order;"));
    assert!(!moved.contains_key("src/controllers/order.rs"));
    let back = done(&moved, &plan(&moved, &many, &one, false).unwrap());
    assert_eq!(back, disk);
    let two = with(&many, &request("stock", "v1", "Item"));
    assert_eq!(
        apply(&files(&many), &Changed { before: many, after: two.clone(), copied: None }),
        files(&two)
    );
}

#[test]
fn conflicting_kinds_and_names_are_rejected() {
    let one = with(&project(), &order());
    let refused = |project: &ProjectFile, request: &Request| said(&add(project, request).unwrap_err());
    let cluster = Request { namespaced: Some(false), ..request("sales", "v2", "Order") };
    let plural = Request { plural: Some("orders".into()), ..request("sales", "v1", "Command") };
    let backup = Request { controller_name: Some("order".into()), ..order() };
    let external = Request { resource: Some(false), ..request("mail", "v1", "Letter") };
    let told = [
        refused(&one, &order()),
        refused(&one, &request("stock", "v1", "Item")),
        refused(&one, &cluster),
        refused(&one, &plural),
        refused(&one, &backup),
        refused(&one, &external),
        refused(&one, &request("sales", "1", "Item")),
        refused(&one, &request("sales", "v1", "Operator")),
        refused(&one, &request("sales", "v1", "OrderSpec")),
        refused(&one, &request("networking.k8s.io", "v1", "Item")),
        refused(
            &ProjectFile { namespaced: true, ..project() },
            &Request { resource: Some(false), ..request("core", "v1", "Node") },
        ),
    ];
    insta::assert_snapshot!(told.join("\n"), @"
    sales.example.com/v1, Order already exists in this project
    the project uses the group sales.example.com; adding stock.example.com requires the multigroup layout
    sales.example.com/v1, Order is namespaced; all versions of a kind have the same scope
    Order and Command have the same plural orders
    sales.example.com/v1, Order already has a controller order
    mail/v1, Letter is not a built-in kind of Kubernetes v1.36
    the version `1` must look like v1, v1beta1 or v2alpha1
    conflicting files at tests/it/operator.rs: test/sales.example.com/v1/Operator/operator and tests/it/operator.rs
    OrderSpec is already a type of the kind Order
    the group networking.k8s.io is reserved for Kubernetes
    the operator is namespaced, but v1, Node is cluster-scoped
    ");
}

#[test]
fn a_controller_can_be_added_later() {
    let without = with(&project(), &Request { controller: Some(false), ..order() });
    assert!(!files(&without).contains_key("src/controllers/order.rs"));
    assert!(add(&without, &order()).is_err());
    for later in [Request { controller: Some(true), ..order() }, Request { resource: Some(false), ..order() }]
    {
        assert_eq!(with(&without, &later), with(&project(), &order()));
    }
}

#[test]
fn force_recreates_the_files_of_a_kind() {
    let one = with(&project(), &order());
    let mut disk = files(&one);
    edited(&mut disk, "src/controllers/order.rs", "Reconciling", "at it");
    let changed = add(&one, &Request { force: true, ..order() }).unwrap();
    assert_eq!(changed.after, one);
    let forced = plan(&disk, &changed.before, &changed.after, true).unwrap();
    assert_eq!(done(&disk, &forced), files(&one));
}

#[test]
fn built_in_kinds_are_found_by_short_group_names() {
    for (group, version, kind, path) in [
        ("core", "v1", "Pod", "k8s_openapi::api::core::v1"),
        ("apps", "v1", "Deployment", "k8s_openapi::api::apps::v1"),
        ("networking", "v1", "Ingress", "k8s_openapi::api::networking::v1"),
        ("rbac", "v1", "Role", "k8s_openapi::api::rbac::v1"),
        ("batch", "v1", "CronJob", "k8s_openapi::api::batch::v1"),
    ] {
        let project = with(&project(), &Request { resource: Some(false), ..request(group, version, kind) });
        assert!(project.resources[0].core);
        assert_eq!(project.resources[0].path, path);
    }
}

#[test]
fn a_kind_named_like_a_built_in_kind_is_a_custom_resource() {
    let project = with(&project(), &request("batch", "v1", "CronJob"));
    assert_eq!(project.resources[0].full_group(), "batch.example.com");
    assert!(files(&project)["src/api/v1/cron_job.rs"].contains("group = \"batch.example.com\""));
}

#[test]
fn an_external_kind_adds_its_crate() {
    let external =
        External { path: "certs::v1::Certificate".into(), domain: "io".into(), module: "certs@1.2".into() };
    let project = with(
        &project(),
        &Request { external: Some(external), ..request("cert-manager", "v1", "Certificate") },
    );
    let files = files(&project);
    assert!(files["Cargo.toml"].ends_with("\n[dependencies.certs]\nversion = \"1.2\"\n"));
    assert!(files["src/controllers/certificate.rs"].contains("use certs::v1::Certificate;"));
    assert!(files["config/rbac/role.yaml"].contains("- cert-manager.io\n"));
}

#[test]
fn an_imported_kind_keeps_its_group_and_can_get_versions() {
    let text = include_str!("../../testdata/crds/markdown_view.yaml");
    let definition = from_crd::crds(text).unwrap();
    let chosen = from_crd::choose(&definition, &from_crd::Wanted::default()).unwrap().remove(0);
    let request = add::imported(chosen);
    let elsewhere = with(&ProjectFile::new("shop.org", "shop"), &request);
    let view = &elsewhere.resources[0];
    assert_eq!((view.group.as_str(), view.domain.as_str()), ("view", "example.com"));
    assert_eq!(view.full_group(), "view.example.com");

    let one = with(&project(), &request);
    assert_eq!(one.resources[0].domain, "example.com");
    let mut disk = files(&one);
    let types = "src/api/v1/markdown_view.rs";
    edited(&mut disk, types, "pub viewer_image: String", "pub image: String");
    let two = add(&one, &self::request("view", "v2", "MarkdownView")).unwrap();
    disk = apply(&disk, &two);
    let copied = &disk["src/api/v2/markdown_view.rs"];
    assert!(copied.contains("storage = false") && copied.contains("pub image: String"), "{copied}");
    let many = ProjectFile { multigroup: true, ..two.after.clone() };
    let moved = done(&disk, &plan(&disk, &two.after, &many, false).unwrap());
    assert!(moved["src/api/view/v1/markdown_view.rs"].contains("pub image: String"));
    for version in ["v1", "v2"] {
        let types = format!("src/api/{version}/markdown_view.rs");
        edited(&mut disk, &types, "pub image: String", "pub viewer_image: String");
    }
    let stored = add::store(&two.after, "view", "MarkdownView", "v2").unwrap();
    let disk = apply(&disk, &stored);
    let gone = remove(&stored.after, "view", "v1", "MarkdownView").unwrap();
    let disk = apply(&disk, &gone);
    let imported: Vec<&String> = disk.keys().filter(|path| path.starts_with("config/crd/imported")).collect();
    assert_eq!(imported, ["config/crd/imported/view.example.com_markdownview_v2.yaml"]);
    assert!(!gone.after.to_text().contains("storageVersions"));
    let gone = remove(&gone.after, "view", "v2", "MarkdownView").unwrap();
    assert!(gone.after.imported.is_empty() && !gone.after.to_text().contains("imported"));
}

#[test]
fn a_new_version_of_an_imported_kind_has_its_names() {
    let definitions = from_crd::crds(include_str!("../../testdata/crds/odd.yaml")).unwrap();
    let chosen = from_crd::choose(&definitions, &from_crd::Wanted::default()).unwrap();
    let requests: Vec<Request> = chosen.into_iter().map(add::imported).collect();
    let both = add::add_all(&project(), &requests).unwrap().after;
    assert_eq!(both.resources.len(), 2);
    let later = with(&both, &request("lab", "v2", "Oddity"));
    let files = files(&later);
    let types = &files["src/api/v2/oddity.rs"];
    assert!(types.contains("    singular = \"odd\",\n    shortname = \"od\",\n"), "{types}");
    let definition = &files["config/crd/bases/lab.example.com_oddities.yaml"];
    assert!(
        definition.contains("    shortNames:\n    - od\n    - odds\n    singular: odd\n"),
        "{definition}"
    );
    // Recreating them changes nothing.
    let forced: Vec<Request> =
        requests.into_iter().map(|request| Request { force: true, ..request }).collect();
    let again = add::add_all(&both, &forced).unwrap();
    assert_eq!(again.after, both);
    assert!(again.before.resources.is_empty() && again.before.imported.is_empty());
}

#[test]
fn a_namespaced_operator_has_roles() {
    let project = with(&ProjectFile { namespaced: true, ..project() }, &order());
    let files = files(&project);
    assert!(
        files["config/rbac/role.yaml"]
            .contains("kind: Role\nmetadata:\n  name: manager-role\n  namespace: shop-system")
    );
    assert!(!files["config/rbac/role.yaml"].contains("ClusterRole"));
    assert!(files["config/rbac/role_binding.yaml"].contains("kind: RoleBinding"));
    assert!(files["config/manager/manager.yaml"].contains("name: WATCH_NAMESPACE"));
}

#[test]
fn sources_have_a_copyright_header_if_there_is_an_owner() {
    let mut project = with(&project(), &order());
    project.set("owner", "The Shop".into());
    let own = &files(&project)["src/main.rs"];
    assert!(own.starts_with("// Copyright The Shop\n\n//!"), "{own}");
    project.set("license", "apache2".into());
    for (path, text) in files(&project) {
        let named = text.starts_with("// Copyright The Shop\n// SPDX-License-Identifier: Apache-2.0\n\n//!");
        let is_source = Path::new(&path).extension().is_some_and(|extension| extension == "rs");
        assert_eq!(named, is_source, "{path}");
    }
}

#[test]
fn a_project_has_a_license_file_if_it_has_a_license() {
    let mut project = project();
    assert!(!files(&project).contains_key("LICENSE"));
    project.set("license", "apache2".into());
    let files = files(&project);
    assert!(
        files["LICENSE"].contains("Apache License\n                           Version 2.0, January 2004")
    );
    assert!(files["LICENSE"].trim_end().ends_with("limitations under the License."));
    assert!(files["Cargo.toml"].contains("license = \"Apache-2.0\""));
}

#[test]
fn changing_the_scope_keeps_user_changes() {
    let own = with(&ProjectFile { namespaced: true, ..project() }, &order());
    let mut disk = files(&own);
    edited(&mut disk, "config/manager/manager.yaml", "memory: 128Mi", "memory: 1Gi");
    let all = ProjectFile { namespaced: false, ..own.clone() };
    let after = done(&disk, &plan(&disk, &own, &all, false).unwrap());
    let manager = &after["config/manager/manager.yaml"];
    assert!(manager.contains("memory: 1Gi") && !manager.contains("WATCH_NAMESPACE"), "{manager}");
    assert!(after["config/rbac/role.yaml"].contains("kind: ClusterRole\n"));
    assert_eq!(done(&after, &plan(&after, &all, &own, false).unwrap()), disk);
}

#[test]
fn a_kubebuilder_project_is_imported_and_the_rest_is_reported() {
    let theirs = ProjectFile::read(include_str!("../../testdata/kubebuilder/PROJECT")).unwrap();
    let (ours, left) = adopt(&theirs, &[]);
    add::check_project(&ours).unwrap();
    let kinds: Vec<String> = ours.resources.iter().map(Resource::shown).collect();
    insta::assert_snapshot!(kinds.join("\n"), @"
    cache.example.com/v1alpha1, Memcached
    world.example.com/v1, Region
    apps/v1, Deployment
    ");
    assert_eq!(ours.resources[1].controller_names(), ["region", "region-backup"]);
    assert_eq!(ours.resources[2].path, "k8s_openapi::api::apps::v1");
    insta::assert_snapshot!(left.join("\n"), @"
    plugin deploy-image.go.kubebuilder.io/v1-alpha: not supported
    plugin grafana.kubebuilder.io/v1-alpha: not supported
    `ssa` of cache.example.com/v1alpha1, Memcached: derive ApplyConfiguration on its types instead
    types of cache.example.com/v1alpha1, Memcached: config/crd/bases has no CRD for it, so they start from a template
    conversion of world.example.com/v1, Region: PROJECT lacks version v2 of the kind
    types of world.example.com/v1, Region: config/crd/bases has no CRD for it, so they start from a template
    cert-manager.io/v1, Certificate of github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1: add it with `create api --external-api-path` and a Rust crate
    ");
}

#[test]
fn an_imported_project_keeps_its_types_and_storage_version() {
    let versions = |hub: &str| {
        let entry = |version: &str| {
            let conversion = if version == hub { "\n  webhooks: {conversion: true}" } else { "" };
            format!(
                "- api: {{crdVersion: v1}}\n  domain: example.com\n  group: lab\n  kind: Oddity\n  \
                 plural: oddities\n  version: {version}{conversion}\n"
            )
        };
        let head = "version: '3'\ndomain: example.com\nlayout: go.kubebuilder.io/v4\nresources:\n";
        ProjectFile::read(&format!("{head}{}{}", entry("v1alpha1"), entry("v1"))).unwrap()
    };
    let stored = |(ours, _): (ProjectFile, Vec<String>)| {
        ours.storage_version(&ours.resources[0]).map(str::to_owned).unwrap()
    };
    // The conversion hub is the storage version; without one, the first version is.
    assert_eq!(stored(adopt(&versions("none"), &[])), "v1alpha1");
    assert_eq!(stored(adopt(&versions("v1"), &[])), "v1");
    let crds = from_crd::crds(include_str!("../../testdata/crds/odd.yaml")).unwrap();
    let (ours, left) = adopt(&versions("v1alpha1"), &crds);
    assert_eq!(ours.imported.len(), 2);
    assert!(!left.iter().any(|what| what.contains("types")), "{left:?}");
    assert!(files(&ours)["src/api/v1/oddity.rs"].contains("pub strategy: "));
    assert_eq!(stored((ours, left)), "v1");
}

#[test]
fn dependency_versions_match_this_workspace() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.toml");
    let workspace = &std::fs::read_to_string(workspace).unwrap();
    let version = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(&format!("{name} = ")));
        let line = line.unwrap_or_else(|| panic!("no {name}"));
        line.split('"').find(|part| part.starts_with(|first: char| first.is_ascii_digit())).map(str::to_owned)
    };
    let made = &files(&project())["Cargo.toml"];
    for name in ["k8s-openapi", "kube", "schemars", "serde", "serde_json", "anyhow", "tokio", "rust-version"]
    {
        assert_eq!(version(made, name), version(workspace, name), "{name}");
    }
}
