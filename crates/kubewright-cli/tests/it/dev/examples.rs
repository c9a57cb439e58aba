//! `kubewright dev` runs the other examples, with one command each, until their samples are ready. Then the commands of
//! their READMEs print what the READMEs show.
//!
//! The examples are copied into a workspace of their own, because cargo builds one package of this workspace with other
//! features than the whole, and would compile its dependencies again.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::example::works;
use super::running::Dev;
use crate::book::{Page, Test};
use crate::run::share_dependencies;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The examples, what `dev` reports for each of their samples, and the number of kubectl commands in their READMEs.
const EXAMPLES: [(&str, &[&str], usize); 4] = [
    ("sample-controller", &["sample Bar default/bar-sample: Ready, 1 Deployment ready, 1 Pod ready"], 7),
    (
        "cronjob",
        &["sample CronJob default/cronjob-sample: ", "sample CronJob default/cronjob-v2-sample: "],
        4,
    ),
    ("collector", &["sample Deployment default/collector-sample: Available"], 4),
    ("config-map-labeller", &[], 3),
];

/// A workspace with the packages of the examples. The programs have other names, because this workspace builds its own
/// in the same target directory.
fn workspace() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let root = Path::new(ROOT).canonicalize().expect("the workspace is there");
    let manifest = fs::read_to_string(root.join("Cargo.toml")).expect("the workspace has a manifest");
    let (_, rest) = manifest.split_once("\n[workspace.package]\n").expect("the manifest has the table");
    let rest = rest.replace("path = \"", &format!("path = \"{}/", root.display()));
    let manifest = format!("[workspace]\nresolver = \"3\"\nmembers = [\"*\"]\n\n[workspace.package]\n{rest}");
    fs::write(folder.path().join("Cargo.toml"), manifest).expect("a file can be written");
    for (name, ..) in EXAMPLES {
        let place = folder.path().join(name);
        copy(&root.join("examples").join(name), &place);
        let path = place.join("Cargo.toml");
        let text = fs::read_to_string(&path).expect("the example has a manifest");
        let library = name.replace('-', "_");
        let text = text
            .replace(&format!("name = \"{name}\"\n"), &format!("name = \"dev-{name}\"\nautobins = false\n"));
        let mut targets = format!("\n[[bin]]\nname = \"dev-{name}\"\npath = \"src/main.rs\"\n");
        if place.join("src/lib.rs").exists() {
            targets.extend(["\n[lib]\nname = \"", &library, "\"\n"]);
        }
        fs::write(path, text + &targets).expect("a file can be written");
        share_dependencies(&place);
        fs::rename(place.join("Cargo.lock"), folder.path().join("Cargo.lock")).expect("a file can be moved");
    }
    folder
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).expect("a folder can be made");
    for entry in fs::read_dir(from).expect("the example is there") {
        let path = entry.expect("the example can be read").path();
        let place: PathBuf = to.join(path.file_name().expect("it has a name"));
        if path.is_dir() {
            copy(&path, &place);
        } else {
            fs::copy(&path, &place).expect("a file can be copied");
        }
    }
}

#[test]
fn one_command_runs_each_example() {
    let folder = workspace();
    for (name, samples, commands) in EXAMPLES {
        let program = format!("dev-{name}");
        let mut dev = Dev::start(folder.path(), &program, &format!("{name} --fresh"));
        dev.says("ready the operator is running");
        let readme = Page::read(&format!("examples/{name}/README.md"));
        let kubeconfig = dev.kubeconfig().to_owned();
        assert_eq!(works(Test::Example, &readme, &folder.path().join(name), &kubeconfig), commands, "{name}");
        let ended = dev.end("INT");
        assert_eq!(ended.status, Some(0), "{name}: {}{}", ended.stdout, ended.stderr);
        for sample in samples {
            assert!(ended.stdout.contains(sample), "{name}: no {sample:?} in {}", ended.stdout);
        }
        assert_eq!(dev.operators(), Vec::<String>::new(), "{name} still runs");
    }
}
