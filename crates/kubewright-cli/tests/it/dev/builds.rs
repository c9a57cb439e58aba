//! What happens while cargo builds: a save, and an end. The package has a build script that waits for a file.

use std::fs;

use super::running::{Dev, processes_in};

const SLOW: &str = r#"
fn main() {
    println!("cargo::rerun-if-changed=src");
    while !std::path::Path::new("go").exists() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}
"#;

#[test]
fn a_save_during_a_build_begins_it_again_and_an_end_leaves_no_cargo() {
    let held = tempfile::tempdir().expect("a folder");
    let folder = held.path().canonicalize().expect("it is there");
    let write = |path: &str, text: &str| fs::write(folder.join(path), text).expect("a file");
    fs::create_dir(folder.join("src")).expect("a folder");
    write("Cargo.toml", "[package]\nname = \"dev-builds\"\nversion = \"0.1.0\"\nedition = \"2024\"\n");
    write("build.rs", SLOW);
    write("src/main.rs", "fn main() {}\n");

    let mut dev = Dev::in_target(&folder, "dev-builds", "--fresh", &folder.join("target"));
    dev.says("Compiling dev-builds");
    write("src/main.rs", "fn main() { std::process::exit(3) }\n");
    dev.says("saved while it was being built; that is begun again");
    write("go", "");
    // It was built, and is no operator.
    dev.says("error: dev-builds cannot say what it declares (exit status: 3)");
    dev.says("rebuilt without success; nothing runs until something is saved");

    fs::remove_file(folder.join("go")).expect("it is there");
    write("src/main.rs", "fn main() {}\n");
    dev.says("Compiling dev-builds");
    let ended = dev.end("INT");
    assert_eq!(ended.status, Some(0), "{}{}", ended.stdout, ended.stderr);
    assert_eq!(processes_in(&folder), Vec::<String>::new());
}
