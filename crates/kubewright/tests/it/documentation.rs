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

/// The keys of `#[kube(...)]` on a kind. [`every_key`] compiles each of them.
const KUBE: [(&str, &str); 18] = [
    ("group", "API group; required"),
    ("version", "API version; required"),
    ("kind", "kind; required. The macro derives a struct of this name from the spec"),
    ("namespaced", "objects have a namespace; without it the kind is cluster-scoped"),
    ("status", "the type of `status`, and the status subresource"),
    ("plural", "name of the resource; defaults to the plural of the kind in lower case"),
    ("singular", "singular name; defaults to the kind in lower case"),
    ("shortname", "short name for kubectl; can be repeated"),
    ("category", "group of resources, such as `all`; can be repeated"),
    ("printcolumn", "column of `kubectl get`; can be repeated"),
    ("selectable", "field that field selectors can use; can be repeated"),
    ("scale", "the scale subresource: paths of the replicas and of the label selector"),
    ("validation", "CEL rule for the whole object; can be repeated"),
    ("annotation", "annotation of the CRD; can be repeated"),
    ("label", "label of the CRD; can be repeated"),
    ("storage", "`false` for the versions that are not stored"),
    ("served", "`false` for a version that the API server does not serve"),
    ("deprecated", "marks the version as deprecated, with a warning"),
];

mod every_key {
    use kubewright::prelude::*;
    use serde::{Deserialize, Serialize};

    #[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug)]
    #[kube(group = "example.com", version = "v1alpha1", kind = "Book", namespaced)]
    #[kube(status = "BookStatus", plural = "books", singular = "book", shortname = "bk", category = "all")]
    #[kube(
        printcolumn(name = "Pages", type_ = "integer", json_path = ".spec.pages"),
        selectable = ".spec.pages"
    )]
    #[kube(scale(spec_replicas_path = ".spec.pages", status_replicas_path = ".status.pages"))]
    #[kube(validation = "self.spec.pages > 0", annotation("a", "b"), label("c", "d"))]
    #[kube(storage = false, served = false, deprecated = "use v1")]
    pub(super) struct BookSpec {
        pages: i32,
    }

    #[derive(KubeSchema, Serialize, Deserialize, Clone, Debug)]
    pub(super) struct BookStatus {
        pages: i32,
    }
}

/// The table of the keys, with the text that sets each of them in [`every_key`].
fn kube_attributes() -> String {
    use kubewright::prelude::*;

    let crd = every_key::Book::crd();
    assert_eq!((crd.name_any().as_str(), crd.spec.versions[0].deprecated), ("books.example.com", Some(true)));
    let source = include_str!("documentation.rs");
    let (_, source) = source.split_once("mod every_key {").expect("the module is in this file");
    let (source, _) = source.split_once("struct BookSpec").expect("the attributes are above it");
    let attributes = source.split("#[kube(").skip(1).filter_map(|rest| rest.split(")]\n").next());
    // rustfmt may break an attribute into lines.
    let attributes: Vec<String> = attributes
        .map(|list| list.split_whitespace().collect::<Vec<_>>().join(" ").trim_end_matches(',').to_owned())
        .collect();
    let attributes = attributes.join(", ");
    let mut section = "\n## `#[kube]`\n\nThe keys of kube's `#[derive(CustomResource)]`, on the struct of the spec. \
                       [kube's documentation](https://docs.rs/kube/latest/kube/derive.CustomResource.html) has the others. \
                       `#[x_kube(validation = ..)]` and `#[x_kube(merge_strategy = ..)]` are for fields, with \
                       `#[derive(KubeSchema)]`.\n\n| key | effect | example |\n|---|---|---|\n"
        .to_owned();
    for (key, effect) in KUBE {
        let example = split_at_commas(&attributes).into_iter().find(|part| {
            part.strip_prefix(key).is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '(']))
        });
        let example = example.unwrap_or_else(|| panic!("`every_key` does not use {key}"));
        writeln!(section, "| `{key}` | {effect} | `{example}` |").unwrap();
    }
    section
}

/// Splits a list at its commas, but not in parentheses.
fn split_at_commas(list: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0, 0);
    for (at, character) in list.char_indices() {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(list[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(list[start..].trim());
    parts
}

/// The table of the markers of `schema`, from their signatures and documentation.
fn schema_markers() -> String {
    let source = include_str!("../../../kubewright-manifests/src/schema.rs");
    let mut section = "\n## Markers of `schema`\n\nA marker is an argument of `#[schemars(transform = ..)]` on a field or a type. \
                       [Custom resources](../crds.md#from-kubebuilders-markers) has kubebuilder's names.\n\n\
                       | marker | effect |\n|---|---|\n"
        .to_owned();
    let mut docs = String::new();
    let mut found = 0;
    for line in source.lines() {
        if let Some(text) = line.strip_prefix("///") {
            docs += text;
        } else if let Some(signature) = line.strip_prefix("pub fn ") {
            let (name, arguments) = signature.split_once('(').expect("a function has arguments");
            let name = name.split('<').next().unwrap_or_default();
            let arguments = arguments.split(") ->").next().unwrap_or_default();
            let names = split_at_commas(arguments).into_iter().filter_map(|it| Some(it.split_once(": ")?.0));
            let names: Vec<_> = names.collect();
            let effect = without_links(docs.trim(), source).replace('|', "\\|");
            writeln!(section, "| `schema::{name}({})` | {effect} |", names.join(", ")).unwrap();
            found += 1;
        } else if !line.starts_with("#[") {
            docs.clear();
        }
    }
    assert!(found > 30, "{found} markers");
    section
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
    let crds = include_str!("../../../kubewright-manifests/src/crd/typed.rs");
    let crds = docs_above(crds, "macro_rules! crds {").replace("kubewright_manifests::", "kubewright::");
    write!(page, "\n## `crds!`\n\n{}\n", markdown(&crds)).unwrap();
    let operator = docs_above(include_str!("../../src/operator.rs"), "macro_rules! operator {");
    write!(page, "\n## `operator!`\n\n{}\n", markdown(&operator)).unwrap();
    page += &kube_attributes();
    page += &schema_markers();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/attributes.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(written, page, "run `UPDATE_DOCS=1 cargo test -p kubewright documentation`");
}

/// The numbers of a Markdown table cell or a text, such as `1,570` of `1,570 us`.
fn numbers(text: &str) -> Vec<&str> {
    let words = text.split(|character: char| !character.is_ascii_digit() && !matches!(character, ',' | '.'));
    words.map(|word| word.trim_matches([',', '.'])).filter(|word| !word.is_empty()).collect()
}

#[test]
fn every_figure_of_the_comparison_is_one_of_the_benchmarks() {
    let page = include_str!("../../../../docs/comparison.md");
    let measured = include_str!("../../../../bench/README.md");
    let measured: Vec<&str> =
        measured.lines().filter(|line| line.starts_with('|')).flat_map(numbers).collect();
    let mut found = 0;
    // The command that repeats the figure is the last cell of its row.
    for row in page.lines().filter(|line| line.ends_with("` |") && line.contains("`cargo xtask bench ")) {
        let cells: Vec<&str> = row.split(" | ").skip(1).collect();
        for number in cells[..cells.len() - 1].iter().flat_map(|cell| numbers(cell)) {
            assert!(measured.contains(&number), "bench/README.md has no {number}: {row}");
            found += 1;
        }
    }
    assert!(found >= 19, "{found} figures");
}
