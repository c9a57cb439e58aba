//! Compares the pages of docs/cookbook with the recipes that are compiled here.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

const PAGES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cookbook");
const RECIPES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cookbook");

/// The names of the files in a directory, without their extension.
fn stems(directory: &str, without: &[&str]) -> BTreeSet<String> {
    let entries = fs::read_dir(directory).expect("the directory exists");
    let paths = entries.map(|entry| entry.expect("the directory can be read").path());
    let stems = paths.map(|path| path.file_stem().expect("a file").to_string_lossy().replace('_', "-"));
    stems.filter(|stem| !without.contains(&stem.as_str())).collect()
}

/// The code of a recipe: the file without its header and without its tests.
fn recipe(source: &str) -> String {
    let code = source.lines().skip_while(|line| line.starts_with("//!") || line.is_empty());
    let code: Vec<&str> = code.take_while(|line| *line != "#[cfg(test)]").collect();
    code.join("\n").trim_end().to_owned()
}

/// The Rust blocks of a page.
fn blocks(page: &str) -> Vec<String> {
    let rest = page.split("```rust\n").skip(1);
    rest.map(|rest| rest.split("\n```").next().unwrap_or_default().to_owned()).collect()
}

#[test]
fn every_page_shows_the_code_of_its_recipe() {
    let pages = stems(PAGES, &["index"]);
    assert_eq!(
        pages,
        stems(RECIPES, &["main", "pages"]),
        "each page has a recipe, and each recipe has a page"
    );
    for name in pages {
        let source = Path::new(RECIPES).join(format!("{}.rs", name.replace('-', "_")));
        let source = fs::read_to_string(source).expect("the recipe can be read");
        let page =
            fs::read_to_string(Path::new(PAGES).join(format!("{name}.md"))).expect("the page can be read");
        assert_eq!(blocks(&page), [recipe(&source)], "docs/cookbook/{name}.md");
        for heading in ["\n## What to expect\n", "\n## Reference\n"] {
            assert!(page.contains(heading), "docs/cookbook/{name}.md has no section {heading:?}");
        }
    }
}

#[test]
fn the_index_and_the_summary_list_every_page() {
    let index = fs::read_to_string(Path::new(PAGES).join("index.md")).expect("the index can be read");
    let summary =
        fs::read_to_string(Path::new(PAGES).join("../SUMMARY.md")).expect("the summary can be read");
    for name in stems(PAGES, &["index"]) {
        assert!(index.contains(&format!("({name}.md)")), "docs/cookbook/index.md lacks {name}.md");
        assert!(summary.contains(&format!("(cookbook/{name}.md)")), "docs/SUMMARY.md lacks {name}.md");
    }
}
