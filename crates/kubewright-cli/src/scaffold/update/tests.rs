//! Tests of scaffold updates, with files in memory.

use std::collections::BTreeMap;
use std::convert::Infallible;

use super::*;
use crate::project::project_file::{Api, ProjectFile, Resource};
use crate::scaffold::base::{self, File};
use crate::scaffold::{Dependency, Options, render};

type Disk = BTreeMap<String, String>;

fn project(kinds: &[&str]) -> ProjectFile {
    let mut project = ProjectFile::new("example.com", "shop");
    project.resources.extend(kinds.iter().map(|kind| Resource {
        api: Some(Api { namespaced: true, ..Api::default() }),
        controller: true,
        domain: "example.com".into(),
        group: "sales".into(),
        kind: (*kind).into(),
        version: "v1".into(),
        ..Resource::default()
    }));
    project
}

fn rendering(kinds: &[&str]) -> Rendering {
    render(&project(kinds), &Options::default())
}

/// The scaffold of an older kubewright: a different Makefile, one additional file and one missing file.
fn old() -> Base {
    let mut base = Base::of(&rendering(&["Order"]), |_| true);
    base.kubewright = "0.0.1".into();
    let makefile = &mut base.files.get_mut("Makefile").unwrap().text;
    *makefile = makefile.replace("$(CARGO) fmt\n", "$(CARGO) fmt --old\n");
    let old = File { path: "OLD.md".into(), text: "old\n".into() };
    base.files.insert("OLD.md".into(), old);
    base.files.remove("Dockerfile");
    base
}

fn on_disk(base: &Base) -> Disk {
    base.files.values().map(|file| (file.path.clone(), file.text.clone())).collect()
}

fn update(base: &Base, disk: &Disk) -> (Disk, Vec<(String, Outcome)>) {
    let read = |path: &str| Ok::<_, Infallible>(disk.get(path).cloned());
    let Ok(update) = Update::new(base, &rendering(&["Order"]), base::PATH, read);
    let mut after = disk.clone();
    for step in update.steps {
        assert_eq!(step.before, disk.get(&step.path).cloned(), "{}", step.path);
        match step.after {
            Some(text) => after.insert(step.path, text),
            None => after.remove(&step.path),
        };
    }
    (after, update.outcomes)
}

#[test]
fn unmodified_files_are_updated() {
    let base = old();
    let (after, outcomes) = update(&base, &on_disk(&base));
    assert_eq!(
        outcomes,
        [
            ("Dockerfile".into(), Outcome::Added),
            ("Makefile".into(), Outcome::Updated),
            ("OLD.md".into(), Outcome::Removed),
        ]
    );
    let new = Base::of(&rendering(&["Order"]), |_| true);
    let mut expected = on_disk(&new);
    expected.insert(base::PATH.into(), new.to_text());
    assert_eq!(after, expected);
    // A second update changes nothing.
    let (again, outcomes) = update(&new, &after);
    assert_eq!((again, outcomes), (after, Vec::new()));
}

#[test]
fn user_changes_are_kept_and_conflicts_are_marked() {
    let base = old();
    let mut disk = on_disk(&base);
    let makefile = disk["Makefile"].clone();
    disk.insert("Makefile".into(), format!("# mine\n{makefile}"));
    disk.insert("OLD.md".into(), "mine\n".into());
    disk.insert("Dockerfile".into(), "FROM mine\n".into());
    let (after, outcomes) = update(&base, &disk);
    assert_eq!(
        outcomes,
        [
            ("Dockerfile".into(), Outcome::Kept),
            ("Makefile".into(), Outcome::Merged),
            ("OLD.md".into(), Outcome::Kept),
        ]
    );
    assert!(after["Makefile"].starts_with("# mine\n") && after["Makefile"].contains("$(CARGO) fmt\n"));
    assert_eq!([&after["OLD.md"], &after["Dockerfile"]], ["mine\n", "FROM mine\n"]);
    // Later updates do not merge the user's Dockerfile either.
    assert!(!Base::read(&after[base::PATH]).unwrap().files.contains_key("Dockerfile"));

    disk.insert("Makefile".into(), makefile.replace("fmt --old", "fmt --mine"));
    let (after, outcomes) = update(&base, &disk);
    assert!(outcomes.contains(&("Makefile".into(), Outcome::Conflict(1))), "{outcomes:?}");
    let marked = "<<<<<<< yours\n\t$(CARGO) fmt --mine\n=======\n\t$(CARGO) fmt\n>>>>>>> kubewright 0.1.0\n";
    assert!(after["Makefile"].contains(marked), "{}", after["Makefile"]);

    disk.remove("Makefile");
    let (after, outcomes) = update(&base, &disk);
    assert!(outcomes.contains(&("Makefile".into(), Outcome::LeftOut)) && !after.contains_key("Makefile"));
}

#[test]
fn the_scaffold_record_round_trips() {
    let mut base = Base::of(&rendering(&["Order", "Customer"]), |_| true);
    for (id, text) in
        [("empty", ""), ("space", "  a\n\tb \n\n"), ("none", "a"), ("odd", "\n# x\r\ny: 'z'\n...\n---\n")]
    {
        base.files.insert(id.into(), File { path: id.into(), text: text.into() });
    }
    assert_eq!(Base::read(&base.to_text()).unwrap(), base);
}

#[test]
fn the_scaffold_record_follows_commands() {
    let of = |kinds: &[&str]| Base::of(&rendering(kinds), |_| true);
    let (none, one, two) = (rendering(&[]), rendering(&["Order"]), rendering(&["Order", "Customer"]));
    assert_eq!(of(&[]).follow(&none, &one), of(&["Order"]));
    assert_eq!(of(&["Order"]).follow(&one, &two), of(&["Order", "Customer"]));
    assert_eq!(of(&["Order", "Customer"]).follow(&two, &one), of(&["Order"]));
    // A newer kubewright adds a kind to an older scaffold: the rest of the record stays old.
    let followed = old().follow(&one, &two);
    assert_eq!(followed.kubewright, "0.0.1");
    assert!(followed.files["Makefile"].text.contains("fmt --old"));
    assert_eq!(followed.files["src/registry.rs"], of(&["Order", "Customer"]).files["src/registry.rs"]);
    assert!(followed.files.contains_key("types/sales.example.com/v1/Customer"));
}

#[test]
fn the_scaffold_record_has_the_kubewright_dependency() {
    for (dependency, standalone) in [
        (Dependency::default(), false),
        (Dependency::Git { url: "https://example.com/kubewright".into(), rev: None }, true),
        (Dependency::Git { url: "https://example.com/it".into(), rev: Some("0123456".into()) }, false),
        (Dependency::Path("../kube\"wright".into()), false),
    ] {
        let options = Options { dependency: dependency.clone(), standalone };
        let found = Base::of(&render(&project(&[]), &options), |_| true).options();
        assert_eq!((found.dependency, found.standalone), (dependency, standalone));
    }
}
