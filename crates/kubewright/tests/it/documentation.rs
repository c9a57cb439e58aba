//! The smallest operator in README.md and docs/runtime.md is `examples/smallest.rs`, which cargo compiles for the tests.

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
