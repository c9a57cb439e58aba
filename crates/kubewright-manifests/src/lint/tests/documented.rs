//! Every code has a section in docs/lints.md.

use std::collections::BTreeSet;
use std::path::Path;

/// All `KW` codes with three digits in a text.
fn codes(text: &str) -> BTreeSet<&str> {
    text.match_indices("KW")
        .filter_map(|(at, _)| text.get(at..at + 5))
        .filter(|code| code[2..].bytes().all(|byte| byte.is_ascii_digit()))
        .collect()
}

fn sources(folder: &Path, texts: &mut String) {
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, texts);
        } else if !path.components().any(|part| part.as_os_str().to_string_lossy().starts_with("tests")) {
            texts.push_str(&without_tests(&std::fs::read_to_string(path).unwrap()));
        }
    }
}

fn without_tests(text: &str) -> String {
    text.split("#[cfg(test)]").next().unwrap_or_default().to_owned()
}

#[test]
fn every_code_has_a_section_and_a_row() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut texts = String::new();
    sources(&package.join("src"), &mut texts);
    let docs = std::fs::read_to_string(package.join("../../docs/lints.md")).unwrap();
    let lines = |start| docs.lines().filter(move |line| line.starts_with(start)).flat_map(codes);
    let (sections, rows): (BTreeSet<&str>, BTreeSet<&str>) =
        (lines("### ").collect(), lines("| [").collect());
    assert!(codes(&texts).len() > 30, "no codes found in the sources");
    let missing: Vec<&str> = codes(&texts).difference(&sections).copied().collect();
    assert_eq!(missing, Vec::<&str>::new(), "codes in the sources without a section in docs/lints.md");
    assert_eq!(rows, sections, "rows of the table in docs/lints.md, and its sections");
}
