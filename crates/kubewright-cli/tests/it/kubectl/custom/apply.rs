//! `kubectl apply` of custom resources, client-side and server-side.

use super::super::cluster::Cluster;
use super::super::server_side::managers;
use super::{DEFINITION, GUIDE};

#[test]
fn client_side_apply_sends_changes_and_removes_dropped_fields() {
    let cluster = Cluster::with(DEFINITION);
    let apply = |object: &str| cluster.feed("apply -f -", object);
    insta::assert_snapshot!(apply(GUIDE), @"markdownview.view.example.com/guide created");
    insta::assert_snapshot!(apply(GUIDE), @"markdownview.view.example.com/guide unchanged");
    insta::assert_snapshot!(apply(&GUIDE.replace("Welcome", "Hello")), @"markdownview.view.example.com/guide configured");
    // Another client sets a field that the file lacks; the file drops the tags and the replicas.
    cluster.kubectl(r#"patch mdv guide --type=merge -p {"spec":{"theme":"dark"}}"#).result();
    let less = GUIDE.replace("  tags: [one, two]\n", "").replace("  replicas: 2\n", "");
    insta::assert_snapshot!(apply(&less), @"markdownview.view.example.com/guide configured");
    // The replicas have their default again.
    insta::assert_snapshot!(cluster.kubectl("get mdv guide -o jsonpath={.spec}"), @r#"{"host":"docs.example.com","image":"mdbook:0.4","maxReplicas":5,"pages":[{"name":"intro","text":"Hello there.","title":"Welcome"},{"name":"setup","title":"Set up"}],"replicas":1,"theme":"dark"}"#);
    // A JSON merge patch replaces the whole list.
    let page = r#"[{"op":"add","path":"/spec/pages/-","value":{"name":"extra"}}]"#;
    cluster.kubectl(&format!("patch mdv guide --type=json -p '{page}'")).result();
    insta::assert_snapshot!(apply(&less.replace("Set up", "Setting up")), @"markdownview.view.example.com/guide configured");
    insta::assert_snapshot!(cluster.session("
        get mdv guide -o jsonpath={.spec.pages[*].name}
        apply view-last-applied mdv guide
    "), @"
    $ kubectl get mdv guide -o jsonpath={.spec.pages[*].name}
    intro setup
    $ kubectl apply view-last-applied mdv guide
    apiVersion: view.example.com/v1
    kind: MarkdownView
    metadata:
      annotations: {}
      labels:
        app: docs
      name: guide
      namespace: default
    spec:
      host: docs.example.com
      pages:
      - name: intro
        text: Hello there.
        title: Welcome
      - name: setup
        title: Setting up
    ");
    insta::assert_snapshot!(cluster.feed("apply --dry-run=server -o jsonpath={.spec.theme} -f -", &GUIDE.replace("replicas: 2", "theme: sepia")), @"sepia");
    insta::assert_snapshot!(cluster.feed("delete -f -", GUIDE), @r#"markdownview.view.example.com "guide" deleted"#);
}

#[test]
fn server_side_apply_shares_fields_and_reports_conflicts() {
    let cluster = Cluster::with(DEFINITION);
    let apply =
        |options: &str, object: &str| cluster.feed(&format!("apply --server-side {options} -f -"), object);
    insta::assert_snapshot!(apply("", GUIDE), @"markdownview.view.example.com/guide serverside-applied");
    insta::assert_snapshot!(apply("", GUIDE), @"markdownview.view.example.com/guide serverside-applied");
    // Two managers may own the same value; another value is a conflict.
    let other = GUIDE.replace("replicas: 2", "replicas: 3").replace("Welcome", "Hello");
    insta::assert_snapshot!(apply("--field-manager=other", GUIDE), @"markdownview.view.example.com/guide serverside-applied");
    insta::assert_snapshot!(apply("--field-manager=third", &other), @r#"
    --- stderr
    error: Apply failed with 4 conflicts: conflicts with "kubectl":
    - .spec.replicas
    - .spec.pages[name="intro"].title
    conflicts with "other":
    - .spec.replicas
    - .spec.pages[name="intro"].title
    Please review the fields above--they currently have other managers. Here
    are the ways you can resolve this warning:
    * If you intend to manage all of these fields, please re-run the apply
      command with the `--force-conflicts` flag.
    * If you do not intend to manage all of the fields, please edit your
      manifest to remove references to the fields that should keep their
      current managers.
    * You may co-own fields by updating your manifest to match the existing
      value; in this case, you'll become the manager if the other manager(s)
      stop managing the field (remove it from their configuration).
    See https://kubernetes.io/docs/reference/using-api/server-side-apply/#conflicts
    --- exit status 1
    "#);
    insta::assert_snapshot!(apply("--field-manager=third --force-conflicts", &other), @"markdownview.view.example.com/guide serverside-applied");
    insta::assert_snapshot!(cluster.kubectl("get mdv guide -o jsonpath={.spec.pages[0].title},{.spec.replicas}"), @"Hello,3");
    insta::assert_snapshot!(apply("--force-conflicts", GUIDE), @"markdownview.view.example.com/guide serverside-applied");
    insta::assert_snapshot!(managers(&cluster, "mdv guide"), @"
    kubectl Apply
    other Apply
    third Apply
    ");
    // A conflict with an update names the API version.
    cluster.kubectl(r#"patch mdv guide --type=merge -p {"spec":{"theme":"dark"}}"#).result();
    cluster.kubectl("scale mdv guide --replicas=4").result();
    insta::assert_snapshot!(apply("", &GUIDE.replace("tags:", "theme: sepia\n  tags:")), @r#"
    --- stderr
    error: Apply failed with 2 conflicts: conflicts with "kubectl" with subresource "scale" using view.example.com/v1:
    - .spec.replicas
    conflicts with "kubectl-patch" using view.example.com/v1:
    - .spec.theme
    Please review the fields above--they currently have other managers. Here
    are the ways you can resolve this warning:
    * If you intend to manage all of these fields, please re-run the apply
      command with the `--force-conflicts` flag.
    * If you do not intend to manage all of the fields, please edit your
      manifest to remove references to the fields that should keep their
      current managers.
    * You may co-own fields by updating your manifest to match the existing
      value; in this case, you'll become the manager if the other manager(s)
      stop managing the field (remove it from their configuration).
    See https://kubernetes.io/docs/reference/using-api/server-side-apply/#conflicts
    --- exit status 1
    "#);
}

#[test]
fn a_field_without_managers_is_removed() {
    let cluster = Cluster::with(DEFINITION);
    let apply = |manager: &str, object: &str| {
        cluster.feed(&format!("apply --server-side --field-manager={manager} -f -"), object).result();
    };
    let spec = || cluster.kubectl("get mdv guide -o jsonpath={.spec}").result();
    let page = "\
apiVersion: view.example.com/v1
kind: MarkdownView
metadata: {name: guide}
spec:
  pages:
  - {name: setup, text: Run it.}
  - {name: extra, title: More}
  tags: [two, three]
  style: {font: serif}
";
    // Entries are sorted by time in seconds, then by manager: Zoe is last in both.
    apply("zoe", GUIDE);
    apply("bob", page);
    insta::assert_snapshot!(spec(), @r#"{"host":"docs.example.com","image":"mdbook:0.4","maxReplicas":5,"pages":[{"name":"intro","text":"Hello there.","title":"Welcome"},{"name":"setup","text":"Run it.","title":"Set up"},{"name":"extra","title":"More"}],"replicas":2,"style":{"font":"serif"},"tags":["one","two","three"],"theme":"light"}"#);
    // Bob drops a page, a text, a tag shared with Zoe, and one that is not.
    apply(
        "bob",
        "apiVersion: view.example.com/v1\nkind: MarkdownView\nmetadata: {name: guide}\nspec: {style: {font: mono}}\n",
    );
    insta::assert_snapshot!(spec(), @r#"{"host":"docs.example.com","image":"mdbook:0.4","maxReplicas":5,"pages":[{"name":"intro","text":"Hello there.","title":"Welcome"},{"name":"setup","title":"Set up"}],"replicas":2,"style":{"font":"mono"},"tags":["one","two"],"theme":"light"}"#);
    // Zoe drops a field with a default.
    apply("zoe", &GUIDE.replace("  replicas: 2\n", "").replace("one, two", "one"));
    insta::assert_snapshot!(spec(), @r#"{"host":"docs.example.com","image":"mdbook:0.4","maxReplicas":5,"pages":[{"name":"intro","text":"Hello there.","title":"Welcome"},{"name":"setup","title":"Set up"}],"replicas":1,"style":{"font":"mono"},"tags":["one"],"theme":"light"}"#);
    insta::assert_snapshot!(cluster.kubectl("get mdv guide -o yaml --show-managed-fields"), @r#"
    apiVersion: view.example.com/v1
    kind: MarkdownView
    metadata:
      creationTimestamp: "<TIME>"
      generation: 4
      labels:
        app: docs
      managedFields:
      - apiVersion: view.example.com/v1
        fieldsType: FieldsV1
        fieldsV1:
          f:spec:
            f:style: {}
        manager: bob
        operation: Apply
        time: "<TIME>"
      - apiVersion: view.example.com/v1
        fieldsType: FieldsV1
        fieldsV1:
          f:metadata:
            f:labels:
              f:app: {}
          f:spec:
            f:host: {}
            f:pages:
              k:{"name":"intro"}:
                .: {}
                f:name: {}
                f:text: {}
                f:title: {}
              k:{"name":"setup"}:
                .: {}
                f:name: {}
                f:title: {}
            f:tags:
              v:"one": {}
        manager: zoe
        operation: Apply
        time: "<TIME>"
      name: guide
      namespace: default
      resourceVersion: "<RV>"
      uid: <UID>
    spec:
      host: docs.example.com
      image: mdbook:0.4
      maxReplicas: 5
      pages:
      - name: intro
        text: Hello there.
        title: Welcome
      - name: setup
        title: Set up
      replicas: 1
      style:
        font: mono
      tags:
      - one
      theme: light
    "#);
}

#[test]
fn apply_migrates_from_client_side_to_server_side() {
    let cluster = Cluster::with(DEFINITION);
    cluster.feed("apply -f -", GUIDE).result();
    insta::assert_snapshot!(managers(&cluster, "mdv guide"), @"kubectl-client-side-apply Update");
    insta::assert_snapshot!(cluster.feed("apply --server-side -f -", &GUIDE.replace("Welcome", "Hello").replace("  tags: [one, two]\n", "")), @"markdownview.view.example.com/guide serverside-applied");
    insta::assert_snapshot!(managers(&cluster, "mdv guide"), @"
    kubectl Apply
    kubectl-last-applied Apply
    ");
    insta::assert_snapshot!(cluster.kubectl("get mdv guide -o jsonpath={.spec}"), @r#"{"host":"docs.example.com","image":"mdbook:0.4","maxReplicas":5,"pages":[{"name":"intro","text":"Hello there.","title":"Hello"},{"name":"setup","title":"Set up"}],"replicas":2,"theme":"light"}"#);
    // And back: the server kept the annotation up to date.
    insta::assert_snapshot!(cluster.kubectl("apply view-last-applied mdv guide"), @"
    apiVersion: view.example.com/v1
    kind: MarkdownView
    metadata:
      labels:
        app: docs
      name: guide
      namespace: default
    spec:
      host: docs.example.com
      pages:
      - name: intro
        text: Hello there.
        title: Hello
      - name: setup
        title: Set up
      replicas: 2
    ");
    insta::assert_snapshot!(cluster.feed("apply -f -", &GUIDE.replace("Welcome", "Hello")), @"markdownview.view.example.com/guide configured");
    insta::assert_snapshot!(cluster.kubectl("get mdv guide -o jsonpath={.spec.tags}"), @r#"["one","two"]"#);
}
