//! Two versions of a kind without a conversion webhook.

use super::{DEFINITION, GUIDE, with_guide};

#[test]
fn all_versions_show_the_same_object_and_deprecated_ones_warn() {
    let cluster = with_guide();
    insta::assert_snapshot!(cluster.session("
        get markdownviews.v1beta1.view.example.com
        get markdownviews.v1.view.example.com
        get markdownviews.v1beta1.view.example.com guide -o jsonpath={.apiVersion},{.spec.theme}
    "), @"
    $ kubectl get markdownviews.v1beta1.view.example.com
    NAME    AGE
    guide   <AGE>
    --- stderr
    Warning: view.example.com/v1beta1 MarkdownView is deprecated; use view.example.com/v1 MarkdownView
    $ kubectl get markdownviews.v1.view.example.com
    NAME    THEME   REPLICAS   READY   AGE
    guide   light   2                  <AGE>
    $ kubectl get markdownviews.v1beta1.view.example.com guide -o jsonpath={.apiVersion},{.spec.theme}
    view.example.com/v1beta1,light
    --- stderr
    Warning: view.example.com/v1beta1 MarkdownView is deprecated; use view.example.com/v1 MarkdownView
    ");
    let old = GUIDE.replace("/v1", "/v1beta1").replace("guide", "old");
    insta::assert_snapshot!(cluster.feed("apply -f -", &old), @"
    markdownview.view.example.com/old created
    --- stderr
    Warning: view.example.com/v1beta1 MarkdownView is deprecated; use view.example.com/v1 MarkdownView
    ");
    insta::assert_snapshot!(cluster.feed("apply -f -", &old), @"
    markdownview.view.example.com/old unchanged
    --- stderr
    Warning: view.example.com/v1beta1 MarkdownView is deprecated; use view.example.com/v1 MarkdownView
    ");
    insta::assert_snapshot!(cluster.session("
        get mdv old -o 'jsonpath={.apiVersion} {.spec.theme} {.metadata.managedFields[0].apiVersion}'
        get crd markdownviews.view.example.com -o jsonpath={.status.storedVersions}
    "), @r#"
    $ kubectl get mdv old -o 'jsonpath={.apiVersion} {.spec.theme} {.metadata.managedFields[0].apiVersion}'
    view.example.com/v1 light view.example.com/v1beta1
    $ kubectl get crd markdownviews.view.example.com -o jsonpath={.status.storedVersions}
    ["v1"]
    "#);
    // The same file in the new version.
    insta::assert_snapshot!(cluster.feed("apply -f -", &GUIDE.replace("guide", "old")), @"markdownview.view.example.com/old configured");
}

#[test]
fn an_unserved_version_is_not_found() {
    let cluster = with_guide();
    let definition =
        DEFINITION.replace("- name: v1beta1\n    served: true", "- name: v1beta1\n    served: false");
    insta::assert_snapshot!(cluster.feed("replace -f -", &definition), @"customresourcedefinition.apiextensions.k8s.io/markdownviews.view.example.com replaced");
    insta::assert_snapshot!(cluster.session("
        api-resources --api-group=view.example.com
        get markdownviews.v1beta1.view.example.com
        get --raw /apis/view.example.com/v1beta1/markdownviews
    "), @r#"
    $ kubectl api-resources --api-group=view.example.com
    NAME            SHORTNAMES   APIVERSION            NAMESPACED   KIND
    markdownviews   mdv          view.example.com/v1   true         MarkdownView
    $ kubectl get markdownviews.v1beta1.view.example.com
    --- stderr
    error: the server doesn't have a resource type "markdownviews"
    --- exit status 1
    $ kubectl get --raw /apis/view.example.com/v1beta1/markdownviews
    --- stderr
    Error from server (NotFound): the server could not find the requested resource
    --- exit status 1
    "#);
    insta::assert_snapshot!(cluster.feed("create -f -", &GUIDE.replace("/v1", "/v1beta1")), @r#"
    --- stderr
    error: resource mapping not found for name: "guide" namespace: "" from "STDIN": no matches for kind "MarkdownView" in version "view.example.com/v1beta1"
    ensure CRDs are installed first
    --- exit status 1
    "#);
    // The CRD may define the warning.
    let definition = DEFINITION.replace(
        "deprecated: true",
        "deprecated: true\n    deprecationWarning: MarkdownViews of v1beta1 go in June",
    );
    cluster.feed("replace -f -", &definition).result();
    insta::assert_snapshot!(cluster.kubectl("get markdownviews.v1beta1.view.example.com"), @"
    NAME    AGE
    guide   <AGE>
    --- stderr
    Warning: MarkdownViews of v1beta1 go in June
    ");
}
