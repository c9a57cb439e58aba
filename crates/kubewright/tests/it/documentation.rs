//! Pages that repeat code: the smallest operator, and the reference of attributes and macros.
//!
//! The smallest operator in README.md and docs/runtime.md is `examples/smallest.rs`, which cargo compiles for the tests.
//! `UPDATE_DOCS=1 cargo test -p kubewright documentation` writes docs/reference/attributes.md.

use std::fmt::Write as _;
use std::path::Path;

/// The example without its header.
fn smallest() -> &'static str {
    let file = include_str!("../../examples/smallest.rs");
    file.split_once("\n\n").expect("the file has a header").1
}

fn rust_blocks(page: &str) -> Vec<&str> {
    let blocks = page.split("```rust\n").skip(1);
    blocks.map(|block| block.split("```").next().unwrap_or_default()).collect()
}

#[test]
fn the_smallest_operator_is_shown_as_it_compiles() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for page in ["README.md", "docs/runtime.md"] {
        let text = std::fs::read_to_string(root.join(page)).unwrap();
        assert_eq!(
            rust_blocks(&text).first().copied(),
            Some(smallest()),
            "{page}: its first Rust block differs from crates/kubewright/examples/smallest.rs; copy the file"
        );
    }
}

/// The documentation above the line of an item, without `///`.
fn docs_above(file: &str, item: &str) -> String {
    let lines: Vec<&str> = file.lines().collect();
    let end = lines.iter().position(|line| *line == item).unwrap_or_else(|| panic!("no line {item}"));
    let start = lines[..end].iter().rposition(|line| !line.starts_with("///") && !line.starts_with("#["));
    let docs = &lines[start.map_or(0, |start| start + 1)..end];
    let docs = docs.iter().filter_map(|line| line.strip_prefix("///"));
    docs.map(|line| line.strip_prefix(' ').unwrap_or(line)).flat_map(|line| [line, "\n"]).collect()
}

/// Rustdoc as plain Markdown: without hidden lines, attributes of code blocks and links to items.
fn markdown(docs: &str) -> String {
    let mut page = String::new();
    let mut is_code = false;
    for line in docs.lines() {
        if line.starts_with("```") {
            is_code = !is_code;
            page.push_str(if is_code { "```rust\n" } else { "```\n" });
        } else if is_code {
            if !line.starts_with("# ") {
                writeln!(page, "{line}").unwrap();
            }
        } else if let Some(heading) = line.strip_prefix("# ") {
            writeln!(page, "### {heading}").unwrap();
        } else {
            writeln!(page, "{}", without_links(line, docs)).unwrap();
        }
    }
    page.trim().to_owned()
}

/// A link to an item becomes its name. Links with an address stay.
fn without_links(line: &str, docs: &str) -> String {
    let mut text = String::new();
    let mut rest = line;
    while let Some((before, link)) = rest.split_once("[`") {
        let Some((name, after)) = link.split_once("`]") else { break };
        text.push_str(before);
        let is_external = after.starts_with("(http") || docs.contains(&format!("[`{name}`]: http"));
        if is_external {
            write!(text, "[`{name}`]").unwrap();
            rest = after;
            continue;
        }
        write!(text, "`{}`", name.trim_start_matches("macro@").trim_start_matches("mod@")).unwrap();
        rest = match after.strip_prefix('(').and_then(|target| target.split_once(')')) {
            Some((_, after)) => after,
            None => after,
        };
    }
    text + rest
}

#[test]
fn links_to_items_become_names() {
    let docs = "[`Kept`]: https://example.com";
    let of = |line| without_links(line, docs);
    assert_eq!(of("an [`A`](b::A), [`macro@C`] and [`Kept`]"), "an `A`, `C` and [`Kept`]");
    assert_eq!(of("no link: [\"get\"], `[`x"), "no link: [\"get\"], `[`x");
}

#[test]
fn the_reference_of_attributes_is_their_documentation() {
    let facade = include_str!("../../src/lib.rs");
    let macros = include_str!("../../../kubewright-macros/src/lib.rs");
    let mut page = String::from(
        "# Attributes and macros\n\nThe attributes and macros of the crate `kubewright`, from its documentation. \
         [Custom resources](../crds.md) has the attributes of kinds and their fields.\n",
    );
    for (title, name, item) in [
        (
            "#[kubewright::main]",
            "main",
            "pub fn main(arguments: TokenStream, item: TokenStream) -> TokenStream {",
        ),
        ("#[rbac]", "rbac", "pub fn rbac(arguments: TokenStream, item: TokenStream) -> TokenStream {"),
        ("#[olm]", "olm", "pub fn olm(arguments: TokenStream, item: TokenStream) -> TokenStream {"),
        (
            "#[webhook]",
            "webhook",
            "pub fn webhook(arguments: TokenStream, item: TokenStream) -> TokenStream {",
        ),
        (
            "#[derive(ApplyConfiguration)]",
            "ApplyConfiguration",
            "pub fn apply_configuration(item: TokenStream) -> TokenStream {",
        ),
        ("object!", "object", "pub fn object(input: TokenStream) -> TokenStream {"),
    ] {
        let docs =
            docs_above(facade, &format!("pub use kubewright_macros::{name};")) + &docs_above(macros, item);
        write!(page, "\n## `{title}`\n\n{}\n", markdown(&docs)).unwrap();
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/attributes.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(written, page, "run `UPDATE_DOCS=1 cargo test -p kubewright documentation`");
}
