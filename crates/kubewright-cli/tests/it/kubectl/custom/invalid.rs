//! Schema and CEL validation errors, as kubectl prints them.

use super::super::cluster::{Answer, Cluster};
use super::{DEFINITION, GUIDE, with_guide};

#[test]
fn every_schema_violation_is_reported() {
    let cluster = Cluster::with(DEFINITION);
    let with = |from: &str, to: &str| cluster.feed("create -f -", &GUIDE.replace(from, to));
    insta::assert_snapshot!(with("replicas: 2", "replicas: 0"), @r#"
    --- stderr
    The MarkdownView "guide" is invalid: spec.replicas: Invalid value: 0: spec.replicas in body should be greater than or equal to 1
    --- exit status 1
    "#);
    insta::assert_snapshot!(with("replicas: 2", "replicas: two"), @r#"
    --- stderr
    The MarkdownView "guide" is invalid:
    * spec.replicas: Invalid value: "string": spec.replicas in body must be of type integer: "string"
    * .spec.replicas: Invalid value: 0: .spec.replicas accessor error: two is of the type string, expected int64
    * <nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation
    --- exit status 1
    "#);
    insta::assert_snapshot!(with("replicas: 2", "replicas: 2.5"), @r#"
    --- stderr
    The MarkdownView "guide" is invalid:
    * spec.replicas: Invalid value: "float64": spec.replicas in body must be of type int32: "float64"
    * <nil>: Invalid value: "": Checked value must be of type integer with format int32 in spec.replicas
    * .spec.replicas: Invalid value: 0: .spec.replicas accessor error: 2.5 is of the type float64, expected int64
    * <nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation
    --- exit status 1
    "#);
    insta::assert_snapshot!(with("replicas: 2", "theme: pink"), @r#"
    --- stderr
    The MarkdownView "guide" is invalid:
    * spec.theme: Unsupported value: "pink": supported values: "light", "dark", "sepia"
    * <nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation
    --- exit status 1
    "#);
    insta::assert_snapshot!(with("replicas: 2", "image: nonsense"), @r#"
    --- stderr
    The MarkdownView "guide" is invalid: spec.image: Invalid value: "nonsense": spec.image in body should match '^[a-z.]+:[0-9.]+$'
    --- exit status 1
    "#);
    insta::assert_snapshot!(with("name: intro, ", ""), @r#"
    --- stderr
    The MarkdownView "guide" is invalid:
    * spec.pages[0].name: Required value
    * <nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation
    --- exit status 1
    "#);
    insta::assert_snapshot!(with("name: setup", "name: intro"), @r#"
    --- stderr
    The MarkdownView "guide" is invalid: spec.pages[1]: Duplicate value: {"name":"intro"}
    --- exit status 1
    "#);
    insta::assert_snapshot!(with("one, two", "one, one"), @r#"
    --- stderr
    The MarkdownView "guide" is invalid: spec.tags[1]: Duplicate value: "one"
    --- exit status 1
    "#);
    insta::assert_snapshot!(with("tags: [one, two]", "tags: {one: two}"), @r#"
    --- stderr
    Error from server (BadRequest): error when creating "STDIN": MarkdownView in version "v1" cannot be handled as a MarkdownView: strict decoding error: unknown field "spec.tags.one"
    --- exit status 1
    "#);
    insta::assert_snapshot!(with("name: guide", "name: Guide"), @r#"
    --- stderr
    The MarkdownView "Guide" is invalid: metadata.name: Invalid value: "Guide": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
    --- exit status 1
    "#);
    // All at once.
    insta::assert_snapshot!(with("  replicas: 2\n", "  replicas: 0\n  theme: pink\n  image: nonsense\n  maxReplicas: many\n"), @r#"
    --- stderr
    The MarkdownView "guide" is invalid:
    * spec.image: Invalid value: "nonsense": spec.image in body should match '^[a-z.]+:[0-9.]+$'
    * spec.maxReplicas: Invalid value: "string": spec.maxReplicas in body must be of type integer: "string"
    * spec.replicas: Invalid value: 0: spec.replicas in body should be greater than or equal to 1
    * spec.theme: Unsupported value: "pink": supported values: "light", "dark", "sepia"
    * <nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation
    --- exit status 1
    "#);
    let spec = |spec: &str| {
        let object = format!(
            "apiVersion: view.example.com/v1\nkind: MarkdownView\nmetadata: {{name: guide}}\n{spec}\n"
        );
        cluster.feed("create -f -", &object)
    };
    insta::assert_snapshot!(spec(""), @r#"
    --- stderr
    The MarkdownView "guide" is invalid:
    * spec: Required value
    * <nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation
    --- exit status 1
    "#);
    insta::assert_snapshot!(spec("spec: {}"), @r#"
    --- stderr
    The MarkdownView "guide" is invalid:
    * spec.pages: Required value
    * <nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation
    --- exit status 1
    "#);
    insta::assert_snapshot!(spec("spec: {pages: []}"), @r#"
    --- stderr
    The MarkdownView "guide" is invalid: spec.pages: Invalid value: 0: spec.pages in body should have at least 1 items
    --- exit status 1
    "#);
    insta::assert_snapshot!(spec("spec: {pages: null}"), @r#"
    --- stderr
    The MarkdownView "guide" is invalid:
    * spec.pages: Required value
    * <nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation
    --- exit status 1
    "#);
}

#[test]
fn cel_rules_report_their_messages() {
    let cluster = with_guide();
    let other = GUIDE.replace("docs.example.com", "www.example.com");
    insta::assert_snapshot!(cluster.feed("create -f -", &GUIDE.replace("guide", "big").replace("replicas: 2", "replicas: 9")), @r#"
    --- stderr
    The MarkdownView "big" is invalid: spec.replicas: Invalid value: there may not be more than maxReplicas
    --- exit status 1
    "#);
    insta::assert_snapshot!(cluster.feed("apply --server-side -f -", &GUIDE.replace("guide", "big").replace("replicas: 2", "replicas: 9")), @r#"
    --- stderr
    The MarkdownView "big" is invalid: spec.replicas: Invalid value: there may not be more than maxReplicas
    --- exit status 1
    "#);
    insta::assert_snapshot!(cluster.feed("replace -f -", &other), @r#"
    --- stderr
    The MarkdownView "guide" is invalid: spec.host: Invalid value: "www.example.com": the host stays docs.example.com
    --- exit status 1
    "#);
    insta::assert_snapshot!(cluster.feed("replace -f -", &other.replace("replicas: 2", "replicas: 9")), @r#"
    --- stderr
    The MarkdownView "guide" is invalid:
    * spec.replicas: Invalid value: there may not be more than maxReplicas
    * spec.host: Invalid value: "www.example.com": the host stays docs.example.com
    --- exit status 1
    "#);
    insta::assert_snapshot!(cluster.session(r#"
        patch mdv guide --type=merge -p '{"spec":{"host":"www.example.com"}}'
        patch mdv guide --type=merge -p '{"spec":{"replicas":6}}' --dry-run=server
        patch mdv guide --type=merge -p '{"spec":{"replicas":6,"maxReplicas":6}}'
        patch mdv guide --type=merge -p '{"spec":{"host":null}}'
        patch mdv guide --type=merge -p '{"spec":{"host":"www.example.com"}}'
    "#), @r#"
    $ kubectl patch mdv guide --type=merge -p '{"spec":{"host":"www.example.com"}}'
    --- stderr
    The MarkdownView "guide" is invalid: spec.host: Invalid value: "www.example.com": the host stays docs.example.com
    --- exit status 1
    $ kubectl patch mdv guide --type=merge -p '{"spec":{"replicas":6}}' --dry-run=server
    --- stderr
    The MarkdownView "guide" is invalid: spec.replicas: Invalid value: there may not be more than maxReplicas
    --- exit status 1
    $ kubectl patch mdv guide --type=merge -p '{"spec":{"replicas":6,"maxReplicas":6}}'
    markdownview.view.example.com/guide patched
    $ kubectl patch mdv guide --type=merge -p '{"spec":{"host":null}}'
    markdownview.view.example.com/guide patched
    $ kubectl patch mdv guide --type=merge -p '{"spec":{"host":"www.example.com"}}'
    markdownview.view.example.com/guide patched
    "#);
}

#[test]
fn unknown_fields_are_rejected_warned_about_or_dropped() {
    let cluster = Cluster::with(DEFINITION);
    let odd = GUIDE.replace("replicas: 2", "colour: red").replace("title: Welcome", "titel: Welcome");
    let create = |options: &str| cluster.feed(&format!("create {options} -f -"), &odd);
    insta::assert_snapshot!(create(""), @r#"
    --- stderr
    Error from server (BadRequest): error when creating "STDIN": MarkdownView in version "v1" cannot be handled as a MarkdownView: strict decoding error: unknown field "spec.colour", unknown field "spec.pages[0].titel"
    --- exit status 1
    "#);
    insta::assert_snapshot!(create("--validate=strict"), @r#"
    --- stderr
    Error from server (BadRequest): error when creating "STDIN": MarkdownView in version "v1" cannot be handled as a MarkdownView: strict decoding error: unknown field "spec.colour", unknown field "spec.pages[0].titel"
    --- exit status 1
    "#);
    insta::assert_snapshot!(create("--validate=warn"), @r#"
    markdownview.view.example.com/guide created
    --- stderr
    Warning: unknown field "spec.colour"
    Warning: unknown field "spec.pages[0].titel"
    "#);
    insta::assert_snapshot!(cluster.kubectl("get mdv guide -o jsonpath={.spec}"), @r#"{"host":"docs.example.com","image":"mdbook:0.4","maxReplicas":5,"pages":[{"name":"intro","text":"Hello there."},{"name":"setup","title":"Set up"}],"replicas":1,"tags":["one","two"],"theme":"light"}"#);
    cluster.kubectl("delete mdv guide").result();
    insta::assert_snapshot!(create("--validate=ignore"), @"markdownview.view.example.com/guide created");
    insta::assert_snapshot!(cluster.feed("replace -f -", &odd), @r#"
    --- stderr
    Error from server (BadRequest): error when replacing "STDIN": MarkdownView in version "v1" cannot be handled as a MarkdownView: strict decoding error: unknown field "spec.colour", unknown field "spec.pages[0].titel"
    --- exit status 1
    "#);
    insta::assert_snapshot!(cluster.feed("replace --validate=warn -f -", &odd), @r#"
    markdownview.view.example.com/guide replaced
    --- stderr
    Warning: unknown field "spec.colour"
    Warning: unknown field "spec.pages[0].titel"
    "#);
    insta::assert_snapshot!(cluster.feed("apply --server-side -f -", &odd), @"
    --- stderr
    Error from server: failed to create typed patch object (default/guide; view.example.com/v1, Kind=MarkdownView): .spec.colour: field not declared in schema
    --- exit status 1
    ");
    // A failed patch shows the resulting object.
    insta::assert_snapshot!(reason(cluster.feed("apply -f -", &odd)), @r#"The request is invalid: patch: Invalid value: "...: strict decoding error: unknown field "spec.colour", unknown field "spec.pages[0].titel""#);
    insta::assert_snapshot!(cluster.feed("create -f -", &GUIDE.replace("kind: MarkdownView", "kind: MarkdownVie")), @r#"
    --- stderr
    error: resource mapping not found for name: "guide" namespace: "" from "STDIN": no matches for kind "MarkdownVie" in version "view.example.com/v1"
    ensure CRDs are installed first
    --- exit status 1
    "#);
}

/// The end of an error that quotes the whole object.
#[track_caller]
fn reason(answer: Answer) -> String {
    let failure = answer.failure();
    let (start, _) = failure.split_once('{').unwrap_or((&failure, ""));
    let (_, end) = failure.rsplit_once("}\"").unwrap_or(("", &failure));
    format!("{start}...{end}")
}
