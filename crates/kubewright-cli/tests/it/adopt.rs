//! The adoption guides in docs/adopt: each is a diff on the operator in testdata/adopt, which is applied, built and run.
//!
//! The operators are built on kube 3 and 4, in one workspace: their dependencies compile once.
//! `cargo xtask ci --only fetch` downloads their packages, by the lock file in testdata/adopt/dependencies.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use kubewright_envtest::{Environment, eventually};
use kubewright_runtime::Key;
use tempfile::TempDir;

use crate::kubectl::process::Process;
use crate::run::{Run, command, run, share_dependencies, target};

const TESTDATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/adopt");
const GUIDES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/adopt");
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The operators: their packages, their guides, and the versions of kube and k8s-openapi.
const GREETERS: [(&str, &str, &str, &str); 6] = [
    ("greeter-envtest", "envtest", "4", "0.28"),
    ("greeter-envtest-on-kube-3", "envtest", "3", "0.27"),
    ("greeter-manager", "manager", "4", "0.28"),
    ("greeter-manager-on-kube-3", "manager", "3", "0.27"),
    ("greeter-adapter", "adapter", "4", "0.28"),
    ("greeter-adapter-on-kube-3", "adapter", "3", "0.27"),
];

/// The workspace of all operators, built with their tests.
static WORKSPACE: LazyLock<PathBuf> = LazyLock::new(|| {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("adopt");
    let _ = fs::remove_dir_all(&root);
    fs::create_dir_all(&root).expect("a folder can be made");
    fs::write(
        root.join("Cargo.toml"),
        format!("[workspace]\nresolver = \"3\"\nmembers = [\"*\"]\n\n{PROFILE}"),
    )
    .expect("a file can be written");
    for (package, guide, kube, openapi) in GREETERS {
        let project = Project::new(guide, "greeter");
        project.change_manifest("", |text| {
            text.replace("name = \"greeter\"", &format!("name = \"{package}\""))
                .replace("\n[workspace]\n", &format!("\n[lib]\nname = \"greeter\"\n\n[[bin]]\nname = \"{package}\"\npath = \"src/main.rs\"\n"))
                .replace("version = \"0.28\"", &format!("version = \"{openapi}\""))
                .replace("kube = { version = \"4\"", &format!("kube = {{ version = \"{kube}\""))
                // The features with which this workspace has built it.
                .replace("features = [\"v1_36\"]", "features = [\"schemars\", \"v1_36\"]")
        });
        project.use_workspace("");
        fs::rename(project.path("Cargo.lock"), root.join("Cargo.lock")).expect("a file can be moved");
        fs::create_dir(root.join(package)).expect("a folder can be made");
        copy(project.folder.path(), &root.join(package));
    }
    let built = cargo(&root, "build --workspace --bins --test greeting");
    assert_eq!(built.status, 0, "{built}");
    root
});

const PROFILE: &str =
    "[profile.dev]\ndebug = \"line-tables-only\"\n\n[profile.dev.package.\"*\"]\ndebug = false\n";

/// Runs cargo offline, in the target directory of the tests.
fn cargo(folder: &Path, arguments: &str) -> Run {
    let mut cargo = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned()));
    cargo.args(arguments.split_whitespace()).current_dir(folder);
    run(cargo.env("CARGO_TARGET_DIR", target()).env("CARGO_NET_OFFLINE", "true"))
}

/// A project of testdata/adopt with a guide's changes.
struct Project {
    folder: TempDir,
}

impl Project {
    fn new(guide: &str, base: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder can be made");
        copy(&Path::new(TESTDATA).join(base), folder.path());
        let file = folder.path().join("guide.diff");
        fs::write(&file, diff(guide)).expect("a file can be written");
        let project = Self { folder };
        let applied = run(project.command("git").args(["apply", "--whitespace=error-all", "guide.diff"]));
        assert_eq!(
            applied.status, 0,
            "docs/adopt/{guide}.md does not apply to testdata/adopt/{base}: {applied}"
        );
        fs::remove_file(file).expect("a file can be removed");
        project
    }

    /// Makes a package of the project use the crates, the dependencies and the lock file of this workspace.
    fn use_workspace(&self, package: &str) {
        let root = Path::new(ROOT).canonicalize().expect("the workspace is there");
        self.change_manifest(package, |text| {
            let lines: Vec<String> = text.lines().map(|line| from_workspace(line, &root)).collect();
            lines.join("\n") + "\n"
        });
        share_dependencies(&self.path(package));
    }

    fn change_manifest(&self, package: &str, change: impl FnOnce(String) -> String) {
        let path = self.path(package).join("Cargo.toml");
        let text = fs::read_to_string(&path).expect("the manifest is there");
        fs::write(path, change(text)).expect("a file can be written");
    }

    fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.folder.path());
        command
    }
}

/// The diffs of a guide.
fn diff(guide: &str) -> String {
    let page =
        fs::read_to_string(Path::new(GUIDES).join(format!("{guide}.md"))).expect("the guide can be read");
    let blocks = page.split("```diff\n").skip(1).map(|rest| rest.split("```").next().unwrap_or_default());
    blocks.collect()
}

/// Replaces a released version of our crates by the path of this workspace.
fn from_workspace(line: &str, root: &Path) -> String {
    match line.split_once(" = \"0.1\"") {
        Some((name, "")) if name.starts_with("kubewright") => {
            format!("{name} = {{ path = \"{}\" }}", root.join("crates").join(name).display())
        }
        _ => line.to_owned(),
    }
}

fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).expect("the project is there") {
        let entry = entry.expect("the project can be read");
        let place = to.join(entry.file_name());
        if entry.file_type().expect("the project can be read").is_dir() {
            fs::create_dir(&place).expect("a folder can be made");
            copy(&entry.path(), &place);
        } else {
            fs::copy(entry.path(), place).expect("a file can be copied");
        }
    }
}

#[test]
fn the_tests_of_the_envtest_guide_pass_on_kube_3_and_4() {
    let tested = cargo(&WORKSPACE, "test --workspace --test greeting");
    assert_eq!(tested.status, 0, "{tested}");
    assert_eq!(tested.stdout.matches("test result: ok. 1 passed").count(), 2, "{tested}");
    // Each package has its own version of kube.
    for (package, _, kube, _) in GREETERS {
        let tree = cargo(&WORKSPACE, &format!("tree -p {package} --depth 1 --prefix none --edges normal"));
        assert!(tree.stdout.contains(&format!("kube v{kube}.")), "{package}: {tree}");
    }
}

#[test]
fn the_manifests_guide_writes_manifests_and_detects_stale_ones() {
    let project = Project::new("manifests", "greeter");
    project.change_manifest("manifests", |text| format!("{text}\n{PROFILE}"));
    project.use_workspace("manifests");
    let manifests = |arguments: &str| {
        let mut command = command(&format!("manifests {arguments}"));
        let command = command.current_dir(project.folder.path()).env("CARGO_TARGET_DIR", target());
        run(command.env("CARGO_NET_OFFLINE", "true"))
    };
    let written = manifests("manifests --quiet");
    assert_eq!(written.status, 0, "{written}");
    let crd =
        fs::read_to_string(project.path("manifests/config/crd/bases/example.com_greetings.yaml")).unwrap();
    assert!(crd.contains("description: The name to greet."), "{crd}");
    let role = fs::read_to_string(project.path("manifests/config/rbac/role.yaml")).unwrap();
    assert!(role.contains("- configmaps\n") && role.contains("- greetings\n"), "{role}");
    assert_eq!(manifests("manifests --check --quiet").status, 0);

    let api = project.path("src/api.rs");
    let text = fs::read_to_string(&api).unwrap();
    fs::write(api, text.replace("pub name: String", "pub names: Vec<String>")).unwrap();
    let stale = manifests("manifests --check --quiet");
    assert!(stale.status == 1 && stale.stdout.contains("names:"), "{stale}");
}

/// Runs the operator of a package on an API server, and checks what it does as leader, its pages, and its shutdown.
async fn runs(package: &str, metric: &str) -> Result<()> {
    let project = WORKSPACE.join(package);
    let env = Environment::builder().https().crds_from(project.join("config/crd.yaml")).start().await?;
    let mut command = Command::new(target().join("debug").join(package));
    command.env("KUBECONFIG", env.kubeconfig().context("the API server does not listen")?);
    command.args(["--leader-elect", "--leader-election-namespace=default", "--log-format=json"]);
    command.args(["--health-probe-bind-address=127.0.0.1:0", "--metrics-bind-address=127.0.0.1:0"]);
    let mut operator = Process::start(command.arg("--metrics-secure=false"), "");
    let probes = address(&operator.line_with("Starting health probe server"))?;
    let metrics = address(&operator.line_with("Starting metrics server"))?;

    env.apply_file(project.join("config/sample.yaml")).await?;
    let client = env.runtime_client();
    eventually(Duration::from_mins(1), async || {
        let map = client.get::<ConfigMap>(&Key::namespaced("default", "hello")).await?;
        let data = map.data.clone().unwrap_or_default();
        ensure!(data.get("text").is_some_and(|text| text == "Hello, Ada!"), "{data:?}");
        Ok(())
    })
    .await?;
    let lease = Key::namespaced("default", package);
    let holder =
        client.get::<Lease>(&lease).await?.spec.as_ref().and_then(|spec| spec.holder_identity.clone());
    assert!(holder.is_some_and(|holder| !holder.is_empty()), "the Lease has no holder");
    assert_eq!(page(&probes, "/readyz"), "ok");
    let page = page(&metrics, "/metrics");
    assert!(page.lines().any(|line| line.starts_with(metric) && !line.ends_with(" 0")), "{page}");
    assert!(page.contains("leader_election_master_status"), "{page}");

    let stopped = run(Command::new("kill").args(["-TERM", &operator.id().to_string()]));
    assert_eq!(stopped.status, 0, "{stopped}");
    let ended = operator.end();
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
    let holder =
        client.get::<Lease>(&lease).await?.spec.as_ref().and_then(|spec| spec.holder_identity.clone());
    assert_eq!(holder.as_deref().unwrap_or_default(), "", "the Lease was not released");
    Ok(())
}

/// The address in a log line.
fn address(line: &str) -> Result<String> {
    let line: serde_json::Value = serde_json::from_str(line)?;
    Ok(line["address"].as_str().context("no address")?.to_owned())
}

/// The body of a page.
fn page(address: &str, path: &str) -> String {
    use std::io::{Read as _, Write as _};
    let mut stream = std::net::TcpStream::connect(address).expect("the server listens");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").expect("it reads");
    let mut response = String::new();
    stream.read_to_string(&mut response).expect("it answers");
    response.split_once("\r\n\r\n").map(|(_, body)| body.trim().to_owned()).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_manager_of_the_guide_runs_an_existing_controller() -> Result<()> {
    for package in ["greeter-manager", "greeter-manager-on-kube-3"] {
        runs(package, "greeter_reconciles_total{result=\"success\"}").await.context(package)?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_adapter_of_the_guide_runs_an_existing_reconcile_function() -> Result<()> {
    let metric = "controller_runtime_reconcile_total{controller=\"greeting\",result=\"requeue_after\"}";
    for package in ["greeter-adapter", "greeter-adapter-on-kube-3"] {
        runs(package, metric).await.context(package)?;
    }
    Ok(())
}

#[test]
fn the_makefile_of_the_go_guide_runs_a_suite_on_the_assets() {
    let project = Project::new("go", "greeter-go");
    // The suite that stands for `go test ./...`: like a Go suite, it starts the binaries in KUBEBUILDER_ASSETS.
    let suite = std::env::current_exe().expect("this program has a file");
    let suite = format!("{} tutorial::a_view_gets_its_children", suite.display());
    let programs = Path::new(env!("CARGO_BIN_EXE_kubewright")).parent().expect("it has a folder");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(std::iter::once(programs.to_owned()).chain(std::env::split_paths(&path)));
    let mut make = project.command("make");
    make.args(["test", &format!("GO_TEST={suite}")]).env("PATH", path.expect("a path"));
    let tested = run(make.env_remove("MAKEFLAGS").env_remove("USE_EXISTING_CLUSTER"));
    assert!(tested.status == 0 && tested.stdout.contains("test result: ok. 1 passed"), "{tested}");
    for name in ["etcd", "kube-apiserver"] {
        assert!(project.path("bin/k8s").join(name).exists(), "{name} is missing");
    }
}
