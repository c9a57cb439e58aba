//! Fields whose validators schemars keeps, and fields where it does not.

use super::*;

fn told(source: &str) -> String {
    let findings = dropped_validators("src/api.rs", source).unwrap();
    let lines = findings.iter().map(|finding| {
        let Finding { code, item, field, message, help, .. } = finding;
        format!("{code} {}:{} {}.{field}: {message}\n  {help}", item.file, item.line, item.path)
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn what_schemars_drops_is_told_with_its_line() {
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
    insta::assert_snapshot!(told(source), @r"
    KW110 src/api.rs:3 BookSpec.pages: schemars drops `length` here without a word: this is a map
      write `#[schemars(transform = schema::min_properties(...))]`, or `max_properties`
    KW110 src/api.rs:5 BookSpec.title: schemars drops `range` here without a word: this is a string
      leave it out, or give the field a type that is a number
    KW110 src/api.rs:7 BookSpec.count: schemars drops `regex` here without a word: this is a number
      leave it out, or give the field a type that is a string
    KW110 src/api.rs:9 BookSpec.tags: schemars drops `range` here without a word: this is a string
      leave it out, or give the field a type that is a number
    KW110 src/api.rs:14 inside::Choice::One.all: schemars drops `inner` here without a word: this is a map
      for the values of a map write `#[schemars(transform = schema::values(...))]`
    ");
}

#[test]
fn what_schemars_keeps_or_this_program_does_not_know_is_left_alone() {
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
    assert_eq!(told(source), "");
}

#[test]
fn a_file_that_is_no_rust_is_an_error() {
    assert!(dropped_validators("src/api.rs", "struct {").is_err());
}
