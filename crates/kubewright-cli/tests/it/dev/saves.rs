//! Effects of a save.

use super::project;
use super::running::Dev;

const CONTROLLER: &str = "src/controllers/page.rs";
const TYPES: &str = "src/api/v1/page.rs";
const SAMPLE: &str = "config/samples/view_v1_page.yaml";
const REASON: &str = "--for=jsonpath={.status.conditions[0].reason}";

#[test]
fn each_save_is_built_and_broken_code_keeps_the_old_operator() {
    let folder = project("dev-saves");
    let mut dev = Dev::start(&folder.path(), "dev-saves", "--fresh");
    let edit = |path: &str, from: &str, to: &str| {
        let text = folder.read(path);
        assert!(text.contains(from), "{path} has {from}");
        folder.write(path, &text.replace(from, to));
    };

    dev.says("ready the operator is running");
    let sample = dev.says("sample Page default/page-sample: Ready");
    assert!(!sample.contains("not"), "{sample}");
    dev.says("kubectl kubectl --kubeconfig");
    assert_eq!(dev.operators().len(), 1);

    // The new behavior is visible in the cluster.
    edit(CONTROLLER, "\"Reconciled\"", "\"Rewritten\"");
    let told = dev.says("rebuilt in ");
    for part in ["(cargo ", ", manifests ", ", crds unchanged, restart "] {
        assert!(told.contains(part), "{told}");
    }
    dev.kubectl(&format!("wait --timeout=60s pages/page-sample {REASON}=Rewritten"));
    assert_eq!(dev.operators().len(), 1);

    // Compiler errors are printed, and the old operator keeps running.
    edit(CONTROLLER, "\"Rewritten\"", "\"Broken\" +");
    dev.says("error: expected expression");
    dev.says("build failed in ");
    folder.write(
        "second.yaml",
        "apiVersion: view.example.com/v1\nkind: Page\nmetadata: {name: second}\nspec: {}\n",
    );
    dev.kubectl(&format!("apply -f {}", folder.path().join("second.yaml").display()));
    dev.kubectl(&format!("wait --timeout=60s pages/second {REASON}=Rewritten"));

    // A changed type changes the CRD, which is installed before the operator starts.
    edit(CONTROLLER, "\"Broken\" +", "\"Mended\"");
    edit(
        TYPES,
        "    pub foo: Option<String>,",
        "    pub foo: Option<String>,\n\n    /// New.\n    #[serde(default)]\n    pub pages: u32,",
    );
    let told = dev.says("rebuilt in ");
    assert!(told.contains("crds (1 changed) "), "{told}");
    dev.kubectl(&format!("wait --timeout=60s pages/second {REASON}=Mended"));
    let field = dev.kubectl("explain pages.spec.pages");
    assert!(field.contains("FIELD: pages <integer>"), "{field}");
    assert!(folder.read("config/crd/bases/view.example.com_pages.yaml").contains("pages:\n"));

    // A saved sample is applied without a build.
    edit(SAMPLE, "name: page-sample", "name: third");
    dev.says("samples 1 object applied in ");
    dev.kubectl("wait --timeout=60s pages/third --for=condition=Ready");

    // Files that cargo does not use restart nothing.
    let before = dev.operators();
    folder.write("src/notes.md", "Nothing that is compiled.");
    let told = dev.says("rebuilt in ");
    assert!(told.contains("same binary, not restarted"), "{told}");
    assert_eq!(dev.operators(), before);

    let ended = dev.end("INT");
    assert_eq!(ended.status, Some(0), "{}{}", ended.stdout, ended.stderr);
    assert_eq!(dev.operators(), Vec::<String>::new());
    assert!(ended.stderr.contains("operator | "), "{}", ended.stderr);
    assert!(!ended.stderr.contains("cluster | "), "{}", ended.stderr);
}

#[test]
fn a_save_that_changes_the_role_reports_the_file_and_its_rules() {
    let folder = project("dev-role");
    let mut dev = Dev::start(&folder.path(), "dev-role", "--fresh --as-admin");
    dev.says("ready the operator is running");
    let edit = |from: &str, to: &str| {
        let text = folder.read(CONTROLLER);
        assert!(text.contains(from), "{CONTROLLER} has {from}");
        folder.write(CONTROLLER, &text.replace(from, to));
    };

    let rule =
        "#[rbac(groups = \"\", resources = \"secrets\", verbs = \"get, delete\")]\nimpl Reconciler for";
    edit("impl Reconciler for", rule);
    dev.says("building dev-role; ");
    let told = dev.says("role config/rbac/role.yaml: ");
    assert!(told.trim_end().ends_with("role.yaml: added delete, get secrets"), "{told}");
    dev.says("rebuilt in ");
    edit("verbs = \"get, delete\"", "verbs = \"get\"");
    let told = dev.says("role config/rbac/role.yaml: ");
    assert!(told.trim_end().ends_with("role.yaml: removed delete secrets"), "{told}");
    assert_eq!(dev.end("INT").status, Some(0));
}

#[test]
fn a_forbidden_call_is_reported_with_the_attribute_to_add() {
    let folder = project("dev-forbidden");
    let status = "        cx.set_status(&status).await?;\n";
    let text = folder.read(CONTROLLER);
    assert!(text.contains(status), "{text}");
    // A read that no registration and no #[rbac] allows. Without it, the sample does not become ready.
    let read = "        let secrets = cx.client().uncached();\n        \
                secrets.list::<k8s_openapi::api::core::v1::Secret>(&kubewright::ListOptions::default()).await?;\n";
    let text = text.replace(status, &format!("{read}{status}"));
    folder.write(CONTROLLER, &text);

    let mut dev = Dev::start(&folder.path(), "dev-forbidden", "--fresh");
    dev.says("the operator runs as system:serviceaccount:");
    // The operator's own log has `is forbidden: User`, before or after this line.
    let told = dev.says("forbidden: list ");
    let attribute =
        r#"list secrets; to grant it, add #[rbac(groups = "", resources = "secrets", verbs = "list")]"#;
    assert!(told.contains(attribute), "{told}");

    // With the attribute, the same call is allowed. The other verb is not used.
    let implementation = "impl Reconciler for PageReconciler {";
    assert!(text.contains(implementation), "{text}");
    let granted = "#[rbac(groups = \"\", resources = \"secrets\", verbs = \"list, delete\")]\n";
    folder.write(CONTROLLER, &text.replace(implementation, &format!("{granted}{implementation}")));
    dev.says("rebuilt in ");
    dev.kubectl("wait --timeout=60s pages/page-sample --for=condition=Ready");
    let ended = dev.end("INT");
    assert_eq!(ended.status, Some(0), "{}{}", ended.stdout, ended.stderr);
    let unused = "delete secrets: not used; declared by #[rbac] at src/controllers/page.rs:";
    assert!(ended.stdout.contains(unused), "{}", ended.stdout);
    assert!(!ended.stdout.contains("list secrets: not used"), "{}", ended.stdout);

    // With `--once`, a forbidden call is an error, also if the samples become ready.
    let ignored =
        read.replace("        secrets.list", "        let _ = secrets.list").replace(".await?", ".await");
    folder.write(CONTROLLER, &text.replace(read, &ignored));
    let mut dev = Dev::start(&folder.path(), "dev-forbidden", "--fresh --once --timeout 8m");
    let ended = dev.wait();
    assert_eq!(ended.status, Some(1), "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stdout.contains("sample Page default/page-sample: Ready"), "{}", ended.stdout);
    assert!(
        ended.stderr.contains("calls were forbidden by the generated RBAC rules; add\n"),
        "{}",
        ended.stderr
    );
    let attribute = "#[rbac(groups = \"\", resources = \"secrets\", verbs = \"list\")]";
    assert!(ended.stderr.contains(attribute), "{}", ended.stderr);

    folder.write(CONTROLLER, &text);
    let mut dev = Dev::start(&folder.path(), "dev-forbidden", "--fresh --as-admin");
    dev.says("sample Page default/page-sample: Ready");
    let ended = dev.end("INT");
    assert_eq!(ended.status, Some(0), "{}{}", ended.stdout, ended.stderr);
    assert!(!ended.stdout.contains("forbidden: "), "{}", ended.stdout);
    assert!(!ended.stderr.contains("forbidden: "), "{}", ended.stderr);
}
