//! What the scaffold refuses, and what it says; nothing is written then.

use std::fs;

use insta::assert_snapshot;

use super::Folder;
use crate::run::{self, command};

const ORDER: &str = "create api --group sales --version v1 --kind Order";

#[test]
fn a_folder_that_is_no_project_is_told_how_to_become_one() {
    let folder = Folder::new("shop");
    let run = folder.run(ORDER);
    assert_snapshot!(run.to_string().replace(&folder.path().display().to_string(), "<FOLDER>"), @"
    exit status 1
    --- stderr
    error: <FOLDER> is no project of kubewright's: it has no PROJECT
      hint: run `kubewright init` first, or run this in the folder of a project
    ");
}

#[test]
fn a_project_is_not_started_twice() {
    let folder = Folder::with_order();
    let before = folder.files();
    let run = folder.run("init --domain example.com");
    assert_snapshot!(run.to_string().replace(&folder.path().display().to_string(), "<FOLDER>"), @"
    exit status 1
    --- stderr
    error: <FOLDER> already contains a project
      hint: use `kubewright create api` to add APIs, or `kubewright edit` to change settings
    ");
    assert_eq!(folder.files(), before);
}

#[test]
fn a_kind_is_not_added_twice_and_nothing_is_written() {
    let folder = Folder::with_order();
    let before = folder.files();
    assert_snapshot!(folder.run(ORDER), @"
    exit status 1
    --- stderr
    error: sales.example.com/v1, Order is in this project already
      hint: --force makes its files again; --controller-name adds a second controller
    ");
    assert_eq!(folder.files(), before);
}

#[test]
fn a_change_of_the_users_that_would_be_lost_is_told() {
    let folder = Folder::with_order();
    let types = folder.read("src/api/v1/order.rs").replace("foo", "amount");
    folder.write("src/api/v1/order.rs", &types);
    let before = folder.files();
    assert_snapshot!(folder.run("delete api --group sales --version v1 --kind Order"), @"
    exit status 1
    --- stderr
    error: src/api/v1/order.rs has changes of yours, and would be removed
      hint: nothing was written; use --dry-run --force to see what would be lost, and --force to apply it
    ");
    assert_eq!(folder.files(), before);
    folder.done("delete api --group sales --version v1 --kind Order --force");
    assert!(!folder.path().join("src/api").exists());
}

#[test]
fn without_a_terminal_nothing_is_asked() {
    assert_snapshot!(Folder::new("shop").run("init"), @"
    exit status 2
    --- stderr
    error: --domain is required, for example example.com

    Usage: kubewright init [OPTIONS] [DIR]

    For more information, try '--help'.
    ");
    assert_snapshot!(Folder::with_order().run("create api --group sales --version v1"), @"
    exit status 2
    --- stderr
    error: --kind is required, for example Order

    Usage: kubewright create api [OPTIONS]

    For more information, try '--help'.
    ");
}

#[test]
fn a_project_of_another_tool_or_a_later_release_is_told_apart() {
    let folder = Folder::with_order();
    let project = folder.read("PROJECT");
    folder.write("PROJECT", &project.replace("kubewright.dev/v1\nplugins", "go.kubebuilder.io/v4\nplugins"));
    assert_snapshot!(folder.run(ORDER), @"
    exit status 1
    --- stderr
    error: the project is laid out as go.kubebuilder.io/v4, and not as kubewright.dev/v1
      hint: carry it over into a folder of its own: `kubewright init --from PROJECT ../another-folder`
    ");
    folder.write("PROJECT", &project.replace("version: \"3\"", "version: \"4\""));
    assert_snapshot!(folder.run(ORDER), @"
    exit status 1
    --- stderr
    error: PROJECT has version 4, and this kubewright knows 3
      hint: use a newer kubewright
    ");
    folder.write("PROJECT", "version: \"3\"\nresources:\n- kind: [\n");
    assert_snapshot!(folder.run(ORDER), @"
    exit status 1
    --- stderr
    error: PROJECT is broken at line 3
      cause: line 3 column 9: unclosed bracket '['
      hint: bring it back from version control; `kubewright` writes this file, people do not
    ");
}

#[test]
fn a_dry_run_prints_a_diff_and_writes_nothing() {
    let folder = Folder::with_order();
    let before = folder.files();
    let diff = folder.done("create api --group sales --version v2 --kind Order --dry-run");
    assert!(diff.contains("--- a/src/registry.rs\n+++ b/src/registry.rs\n"), "{diff}");
    assert!(diff.contains("--- /dev/null\n+++ b/src/api/v2/order.rs\n"), "{diff}");
    assert_eq!(folder.files(), before);
}

#[test]
fn a_folder_that_cannot_be_written_to_keeps_what_it_has() {
    let folder = Folder::new("shop");
    // A file where a folder is to be: it cannot be made, whoever runs this.
    folder.write("config", "mine\n");
    let run = folder.run("init --domain example.com --kubewright-version 0.1.0");
    assert_eq!(run.status, 1, "{run}");
    assert_eq!(folder.files(), [("config".to_owned(), "mine\n".to_owned())]);
}

#[test]
fn a_readme_that_is_there_already_stays() {
    let folder = Folder::new("shop");
    folder.write("README.md", "mine\n");
    let run = folder.run("init --domain example.com --kubewright-version 0.1.0");
    assert_eq!(run.status, 0, "{run}");
    assert!(run.stderr.contains("README.md is there already, and stays as it is"), "{run}");
    assert_eq!(folder.read("README.md"), "mine\n");
}

#[test]
fn a_project_depends_on_the_checkout_that_built_the_tool_unless_told_otherwise() {
    let folder = Folder::new("shop");
    folder.done("init --domain example.com");
    let crates = fs::canonicalize(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).expect("it is there");
    let line = format!("kubewright = {{ path = \"{}/kubewright\" }}", crates.display());
    assert!(folder.read("Cargo.toml").contains(&line), "{}", folder.read("Cargo.toml"));
    let folder = Folder::new("shop");
    folder.done("init --domain example.com --kubewright-git https://example.com/kubewright");
    let line = "kubewright = { git = \"https://example.com/kubewright\" }";
    assert!(folder.read("Cargo.toml").contains(line), "{}", folder.read("Cargo.toml"));
}

#[test]
fn a_file_that_defines_no_kind_is_refused() {
    let folder = Folder::with_order();
    let before = folder.files();
    assert_snapshot!(folder.run("create api --from-crd PROJECT"), @"
    exit status 1
    --- stderr
    error: cannot generate types from PROJECT
      cause: there is no CustomResourceDefinition in it
      hint: `kubectl get crd NAME -o yaml` prints one
    ");
    assert_snapshot!(folder.run("create api --from-crd nowhere.yaml"), @"
    exit status 1
    --- stderr
    error: cannot generate types from nowhere.yaml
      cause: No such file or directory (os error 2)
    ");
    let views = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/crds/markdown_view.yaml");
    assert_snapshot!(folder.run(&format!("create api --from-crd {views} --kind Order")), @"
    exit status 1
    --- stderr
    error: the file does not define Order
      hint: it defines view.example.com, MarkdownView; leave out --group and --kind
    ");
    assert_eq!(folder.files(), before);
}

#[test]
fn a_definition_is_read_from_standard_input_too() {
    let folder = Folder::new("views");
    folder.done("init --domain example.com --kubewright-version 0.1.0");
    let views = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/crds/markdown_view.yaml");
    let file = fs::File::open(views).expect("it is there");
    let run = run::run(command("create api --from-crd -").current_dir(folder.path()).stdin(file));
    assert_eq!(run.status, 0, "{run}");
    assert!(folder.read("src/api/v1/markdown_view.rs").contains("pub markdowns: BTreeMap<String, String>,"));
    folder.remove("config/crd/imported/view.example.com_markdownview_v1.yaml");
    let run = folder.run("edit --multigroup");
    assert!(run.stderr.contains("which view.example.com/v1, MarkdownView was made from"), "{run}");
}

#[test]
fn objects_of_the_cluster_keep_an_operator_from_having_its_own_namespace() {
    let folder = Folder::new("shop");
    folder.done("init --domain example.com --kubewright-version 0.1.0");
    folder.done(&format!("{ORDER} --namespaced=false"));
    assert_snapshot!(folder.run("edit --namespaced"), @"
    exit status 1
    --- stderr
    error: the operator is for its own namespace, and sales.example.com/v1, Order has objects that are in none
      hint: `kubewright edit --namespaced=false` lets the operator watch everything
    ");
}

#[test]
fn what_kubebuilder_says_of_a_project_is_carried_over() {
    let folder = Folder::new("shop");
    let theirs = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/kubebuilder/PROJECT");
    let run = folder.run(&format!("init --from {theirs} --kubewright-version 0.1.0"));
    assert_eq!(run.status, 0, "{run}");
    assert_snapshot!(run.stderr, @"
    warning: not imported: the plugin deploy-image.go.kubebuilder.io/v1-alpha: kubewright has no such plugin
    warning: not imported: the plugin grafana.kubebuilder.io/v1-alpha: kubewright has no such plugin
    warning: not imported: `ssa` of cache.example.com/v1alpha1, Memcached: derive ApplyConfiguration on its types instead
    warning: not imported: the types of cache.example.com/v1alpha1, Memcached: they start as a template, since config/crd/bases has no CRD of it
    warning: not imported: the conversion of world.example.com/v1, Region: PROJECT has no version v2 of the kind
    warning: not imported: the types of world.example.com/v1, Region: they start as a template, since config/crd/bases has no CRD of it
    warning: not imported: cert-manager.io/v1, Certificate, which github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1 defines: add it with `create api --external-api-path` and a Rust crate
    warning: not imported: Go code: reconcilers and webhooks start from templates
    ");
    assert!(folder.path().join("src/controllers/world/region_backup.rs").is_file());
    assert!(folder.read("src/webhooks/world/v1/region.rs").contains("impl Defaulter for RegionDefaulter"));
}

#[test]
fn an_operator_that_gets_its_own_namespace_is_not_advised_to_delete_its_crds() {
    let folder = Folder::with_order();
    let told = [folder.run("edit --namespaced"), folder.run("edit --namespaced=false")].map(|run| run.stderr);
    assert!(!told.concat().contains("undeploy"), "{told:?}");
    assert_snapshot!(told.concat(), @"
    note: on clusters with the operator, run `make deploy`, then delete the old role: `kubectl delete clusterrolebinding/shop-manager-rolebinding clusterrole/shop-manager-role`
    note: on clusters with the operator, run `make deploy`, then delete the old role: `kubectl delete -n shop-system rolebinding/shop-manager-rolebinding role/shop-manager-role`
    ");
}

#[test]
fn a_webhook_that_cannot_be_added_is_refused_with_a_remedy() {
    let folder = Folder::with_order();
    let before = folder.files();
    let which = "--group sales --version v1 --kind Order";
    assert_snapshot!(folder.run(&format!("create webhook {which}")), @"
    exit status 1
    --- stderr
    error: no webhook is chosen
      hint: choose at least one of --defaulting, --programmatic-validation and --conversion
    ");
    assert_snapshot!(folder.run(&format!("create webhook {which} --conversion --spoke v2")), @"
    exit status 1
    --- stderr
    error: Order has no version v2
      hint: add it first: `kubewright create api --group sales --version v2 --kind Order`
    ");
    assert_snapshot!(folder.run("create webhook --group sales --version v1 --kind Item --defaulting"), @"
    exit status 1
    --- stderr
    error: sales/v1, Item is not in this project
      hint: add it first: `kubewright create api --group sales --version v1 --kind Item`; a kind of a crate is named with --external-api-path and --external-api-domain
    ");
    assert_snapshot!(folder.run(&format!("delete webhook {which}")), @"
    exit status 1
    --- stderr
    error: sales/v1, Order has no webhooks
      hint: this project has no webhooks
    ");
    assert_eq!(folder.files(), before);
}

#[test]
fn a_conversion_of_versions_that_are_served_is_deleted_by_force_only() {
    let folder = Folder::with_order();
    folder.done("create api --group sales --version v2 --kind Order");
    let before = folder.files();
    let which = "--group sales --version v1 --kind Order";
    folder.done(&format!("create webhook {which} --conversion --spoke v2"));
    assert_snapshot!(folder.run(&format!("delete webhook {which}")), @"
    exit status 1
    --- stderr
    error: Order is served as v1 and v2; without a conversion, fields that differ are lost
      hint: serve one version only (`served = false` in `#[kube(...)]` of the others, then `make manifests`), or give all versions of Order the same fields and use --force
    ");
    assert_snapshot!(folder.run("delete api --group sales --version v2 --kind Order"), @"
    exit status 1
    --- stderr
    error: sales.example.com/v2, Order is a spoke of the conversion of v1
      hint: delete that first: `kubewright delete webhook --group sales --version v1 --kind Order --conversion --spoke v2`
    ");
    folder.done(&format!("delete webhook {which} --force"));
    assert_eq!(folder.files(), before);
}

#[test]
fn a_repeated_webhook_changes_nothing() {
    let folder = Folder::with_order();
    let create = "create webhook --group sales --version v1 --kind Order --defaulting --make=false";
    folder.done(create);
    let before = folder.files();
    assert_snapshot!(folder.run(create), @"
    exit status 0
    --- stderr
    note: --make has no effect: the webhook configurations are generated without a build
    note: Order already has these webhooks; use --force to recreate their files
    ");
    assert_eq!(folder.files(), before);
    // The sample that fixtures were copied from may change: the copies are removed all the same.
    folder.done("delete webhook --group sales --version v1 --kind Order");
    let sample = folder.read("config/samples/sales_v1_order.yaml").replace("spec: {}", "spec:\n  foo: a");
    folder.write("config/samples/sales_v1_order.yaml", &sample);
    let start = folder.files();
    folder.done(create);
    assert_eq!(folder.read("tests/fixtures/webhooks/v1/order/default/sample.yaml"), sample);
    folder.done("delete webhook --group sales --version v1 --kind Order");
    assert_eq!(folder.files(), start);
}

#[test]
fn the_source_of_webhook_certificates_is_an_edit() {
    let folder = Folder::with_order();
    let said = |line: &str| folder.run(line).stderr;
    let mut told = said("edit --webhook-certs cert-manager");
    folder.done("create webhook --group sales --version v1 --kind Order --defaulting");
    assert!(folder.path().join("config/certmanager/issuer.yaml").is_file());
    for mode in ["files", "none", "self-signed", "cert-manager"] {
        told += &said(&format!("edit --webhook-certs {mode}"));
    }
    assert_snapshot!(told, @"
    note: this project has no webhooks yet; add one with `kubewright create webhook`
    note: create the Secret webhook-server-cert with tls.crt and tls.key in the operator's namespace, and put its CA into `caBundle` of the webhook configurations and CRDs
    note: the API server requires TLS for webhooks: terminate it in a proxy
    note: the manager issues its own certificate; no other component is needed
    note: cert-manager must be installed before `make deploy`
    ");
}
