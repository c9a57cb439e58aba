//! Fields whose validators schemars keeps or drops.

use super::*;

fn rendered(source: &str) -> String {
    let findings = dropped_validators("src/api.rs", source).unwrap();
    let lines = findings.iter().map(|finding| {
        let Finding { code, item, field, message, help, .. } = finding;
        format!("{code} {}:{} {}.{field}: {message}\n  {help}", item.file, item.line, item.path)
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn dropped_validators_are_reported_with_their_line() {
    let source = r#"
        struct BookSpec {
            #[schemars(length(min = 1))]
            pages: BTreeMap<String, String>,
            #[schemars(range(min = 1), length(max = 9))]
            title: Option<String>,
            #[validate(regex(pattern = "a"))]
            count: i32,
            #[schemars(inner(range(min = 1)))]
            tags: Vec<String>,
        }
        mod inside {
            enum Choice {
                One { #[schemars(inner(length(min = 1)))] all: std::collections::HashMap<String, String> },
            }
        }
    "#;
    insta::assert_snapshot!(rendered(source), @"
    KW110 src/api.rs:3 BookSpec.pages: schemars silently drops `length` here, because this is a map
      write `#[schemars(transform = schema::min_properties(...))]`, or `max_properties`
    KW110 src/api.rs:5 BookSpec.title: schemars silently drops `range` here, because this is a string
      remove it, or give the field a numeric type
    KW110 src/api.rs:7 BookSpec.count: schemars silently drops `regex` here, because this is a number
      remove it, or give the field a string type
    KW110 src/api.rs:9 BookSpec.tags: schemars silently drops `range` here, because this is a string
      remove it, or give the field a numeric type
    KW110 src/api.rs:14 inside::Choice::One.all: schemars silently drops `inner` here, because this is a map
      for map values, write `#[schemars(transform = schema::values(...))]`
    ");
}

#[test]
fn kept_validators_and_unknown_types_are_not_reported() {
    let source = r#"
        struct BookSpec {
            #[schemars(length(min = 1), regex(pattern = "^a"))]
            title: Option<Cow<'static, str>>,
            #[schemars(range(min = 1, max = 2.5))]
            count: Box<u64>,
            #[schemars(length(min = 1), inner(length(max = 3)))]
            tags: Vec<String>,
            #[schemars(range(min = 1), transform = schema::minimum(1))]
            alias: Count,
            #[schemars(with = "String", length(min = 1))]
            with: BTreeMap<String, String>,
            #[serde(default)]
            plain: BTreeMap<String, String>,
        }
    "#;
    assert_eq!(rendered(source), "");
}

#[test]
fn a_file_that_is_not_rust_is_an_error() {
    assert!(dropped_validators("src/api.rs", "struct {").is_err());
}
