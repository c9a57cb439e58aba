//! Updates of custom resources: patch, replace, edit, label and scale.

use super::super::edit::{refused, sed};
use super::{GUIDE, with_guide};

#[test]
fn merge_and_json_patches_work_and_strategic_ones_do_not() {
    let cluster = with_guide();
    insta::assert_snapshot!(cluster.session(r#"
        patch mdv guide --type=merge -p '{"spec":{"theme":"dark","tags":null}}'
        patch mdv guide --type=merge -p '{"spec":{"theme":"dark"}}'
        patch mdv guide --type=json -p '[{"op":"replace","path":"/spec/pages/0/title","value":"Hey"}]'
        patch mdv guide --type=json -p '[{"op":"test","path":"/spec/theme","value":"light"}]'
        patch mdv guide --type=strategic -p '{"spec":{"theme":"sepia"}}'
        patch mdv guide -p '{"spec":{"theme":"sepia"}}'
        label mdv guide tier=front
        annotate mdv guide view.example.com/by=me
        get mdv guide -o jsonpath={.spec}
        get mdv guide -o jsonpath={.metadata.labels}{.metadata.annotations}{.metadata.generation}
    "#), @r#"
    $ kubectl patch mdv guide --type=merge -p '{"spec":{"theme":"dark","tags":null}}'
    markdownview.view.example.com/guide patched
    $ kubectl patch mdv guide --type=merge -p '{"spec":{"theme":"dark"}}'
    markdownview.view.example.com/guide patched (no change)
    $ kubectl patch mdv guide --type=json -p '[{"op":"replace","path":"/spec/pages/0/title","value":"Hey"}]'
    markdownview.view.example.com/guide patched
    $ kubectl patch mdv guide --type=json -p '[{"op":"test","path":"/spec/theme","value":"light"}]'
    --- stderr
    The request is invalid: the server rejected our request due to an error in our request
    --- exit status 1
    $ kubectl patch mdv guide --type=strategic -p '{"spec":{"theme":"sepia"}}'
    --- stderr
    error: application/strategic-merge-patch+json is not supported by view.example.com/v1, Kind=MarkdownView: the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml
    --- exit status 1
    $ kubectl patch mdv guide -p '{"spec":{"theme":"sepia"}}'
    --- stderr
    error: application/strategic-merge-patch+json is not supported by view.example.com/v1, Kind=MarkdownView: the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml
    --- exit status 1
    $ kubectl label mdv guide tier=front
    markdownview.view.example.com/guide labeled
    $ kubectl annotate mdv guide view.example.com/by=me
    markdownview.view.example.com/guide annotated
    $ kubectl get mdv guide -o jsonpath={.spec}
    {"host":"docs.example.com","image":"mdbook:0.4","maxReplicas":5,"pages":[{"name":"intro","text":"Hello there.","title":"Hey"},{"name":"setup","title":"Set up"}],"replicas":2,"theme":"dark"}
    $ kubectl get mdv guide -o jsonpath={.metadata.labels}{.metadata.annotations}{.metadata.generation}
    {"app":"docs","tier":"front"}{"view.example.com/by":"me"}3
    "#);
}

#[test]
fn replace_writes_the_whole_object() {
    let cluster = with_guide();
    insta::assert_snapshot!(cluster.feed("replace -f -", &GUIDE.replace("replicas: 2", "theme: sepia").replace("Welcome", "Salut")), @"markdownview.view.example.com/guide replaced");
    insta::assert_snapshot!(cluster.kubectl("get mdv guide -o jsonpath={.spec}"), @r#"{"host":"docs.example.com","image":"mdbook:0.4","maxReplicas":5,"pages":[{"name":"intro","text":"Hello there.","title":"Salut"},{"name":"setup","title":"Set up"}],"replicas":1,"tags":["one","two"],"theme":"sepia"}"#);
    insta::assert_snapshot!(cluster.feed("replace -f -", &GUIDE.replace("guide", "nope")), @r#"
    --- stderr
    Error from server (NotFound): error when replacing "STDIN": markdownviews.view.example.com "nope" not found
    --- exit status 1
    "#);
    insta::assert_snapshot!(cluster.feed("replace --force -f -", GUIDE), @r#"
    markdownview.view.example.com "guide" deleted
    markdownview.view.example.com/guide replaced
    "#);
}

#[test]
fn edit_saves_valid_objects_and_reopens_invalid_ones() {
    let cluster = with_guide();
    insta::assert_snapshot!(cluster.edit("edit mdv guide", &sed("theme: light", "theme: dark")), @"markdownview.view.example.com/guide edited");
    insta::assert_snapshot!(cluster.edit("edit mdv guide", "true\n"), @"
    --- stderr
    Edit cancelled, no changes made.
    ");
    // Opened twice: the second time the file has the error, and the editor changes nothing.
    let again =
        |change: &str| format!("if grep -q 'not valid' \"$1\"; then grep '^#' \"$1\"; else\n{change}fi\n");
    insta::assert_snapshot!(refused(&cluster.edit("edit mdv guide", &again(&sed("replicas: 2", "replicas: 20"))).to_string()), @r#"
    # Please edit the object below. Lines beginning with a '#' will be ignored,
    # and an empty file will abort the edit. If an error occurs while saving this file will be
    # reopened with the relevant failures.
    #
    # markdownviews.view.example.com "guide" was not valid:
    # * spec.replicas: Invalid value: there may not be more than maxReplicas
    #
    --- stderr
    error: markdownviews.view.example.com "guide" is invalid
    error: Edit cancelled, no valid changes were saved.
    --- exit status 1
    "#);
    insta::assert_snapshot!(refused(&cluster.edit("edit mdv guide", &again(&sed("theme: dark", "theme: pink"))).to_string()), @r#"
    # Please edit the object below. Lines beginning with a '#' will be ignored,
    # and an empty file will abort the edit. If an error occurs while saving this file will be
    # reopened with the relevant failures.
    #
    # markdownviews.view.example.com "guide" was not valid:
    # * spec.theme: Unsupported value: "pink": supported values: "light", "dark", "sepia"
    # * <nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation
    #
    --- stderr
    error: markdownviews.view.example.com "guide" is invalid
    error: Edit cancelled, no valid changes were saved.
    --- exit status 1
    "#);
    // The rejected version is kept in a file.
    let script = format!("if ! grep -q 'not valid' \"$1\"; then\n{}fi\n", sed("replicas: 2", "replicas: 20"));
    let shown = cluster.edit("edit mdv guide", &script).to_string();
    let copy = shown.split('"').find(|word| word.contains("/kubectl-edit-")).expect("a file is named");
    let copy = cluster.read(copy);
    assert!(copy.contains("\n  replicas: 20\n"), "{copy}");
    assert!(copy.contains("\n# * spec.replicas: Invalid value: there may"), "{copy}");
    // Fixed the second time.
    let mended = format!(
        "if grep -q 'not valid' \"$1\"; then\n{}else\n{}fi\n",
        sed("theme: pink", "theme: sepia"),
        sed("theme: dark", "theme: pink")
    );
    insta::assert_snapshot!(cluster.edit("edit mdv guide", &mended), @r#"
    markdownview.view.example.com/guide edited
    --- stderr
    error: markdownviews.view.example.com "guide" is invalid
    "#);
    insta::assert_snapshot!(cluster.kubectl("get mdv guide -o jsonpath={.spec.theme}"), @"sepia");
}
