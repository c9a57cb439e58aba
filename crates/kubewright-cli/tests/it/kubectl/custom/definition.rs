//! CRDs: served when applied, and deleted with all their objects.

use super::super::cluster::Cluster;
use super::{DEFINITION, GUIDE, with_guide};

#[test]
fn a_crd_is_served_when_it_is_applied() {
    let cluster = Cluster::start();
    // Fills kubectl's discovery cache before the kind exists.
    insta::assert_snapshot!(cluster.kubectl("get mdv"), @r#"
    --- stderr
    error: the server doesn't have a resource type "mdv"
    --- exit status 1
    "#);
    insta::assert_snapshot!(cluster.feed("apply -f -", DEFINITION), @"customresourcedefinition.apiextensions.k8s.io/markdownviews.view.example.com created");
    insta::assert_snapshot!(cluster.feed("apply -f -", GUIDE), @"markdownview.view.example.com/guide created");
    insta::assert_snapshot!(cluster.session("
        wait --for=condition=Established crd/markdownviews.view.example.com
        get crd
        get crd markdownviews.view.example.com -o jsonpath={.status.storedVersions}
        api-resources --api-group=view.example.com -o wide
    "), @r#"
    $ kubectl wait --for=condition=Established crd/markdownviews.view.example.com
    customresourcedefinition.apiextensions.k8s.io/markdownviews.view.example.com condition met
    $ kubectl get crd
    NAME                             CREATED AT
    markdownviews.view.example.com   <TIME>
    $ kubectl get crd markdownviews.view.example.com -o jsonpath={.status.storedVersions}
    ["v1"]
    $ kubectl api-resources --api-group=view.example.com -o wide
    NAME            SHORTNAMES   APIVERSION            NAMESPACED   KIND           VERBS                                                        CATEGORIES
    markdownviews   mdv          view.example.com/v1   true         MarkdownView   delete,deletecollection,get,list,patch,create,update,watch   all,docs
    "#);
    insta::assert_snapshot!(cluster.feed("apply -f -", DEFINITION), @"customresourcedefinition.apiextensions.k8s.io/markdownviews.view.example.com unchanged");
}

#[test]
fn changes_of_a_crd_are_served_immediately() {
    let cluster = with_guide();
    let changed = DEFINITION
        .replace("shortNames: [mdv]", "shortNames: [mdv, md]")
        .replace(
            "- {name: Theme,",
            "- {name: Host, type: string, jsonPath: .spec.host}\n    - {name: Theme,",
        )
        .replace(
            "              tags: {",
            "              language: {description: The language of the pages., type: string, default: en}\n              tags: {",
        );
    insta::assert_snapshot!(cluster.feed("replace -f -", &changed), @"customresourcedefinition.apiextensions.k8s.io/markdownviews.view.example.com replaced");
    insta::assert_snapshot!(cluster.session("
        api-resources --api-group=view.example.com
        get md
        get md guide -o jsonpath={.spec.language}
        explain md.spec.language
    "), @"
    $ kubectl api-resources --api-group=view.example.com
    NAME            SHORTNAMES   APIVERSION            NAMESPACED   KIND
    markdownviews   mdv,md       view.example.com/v1   true         MarkdownView
    $ kubectl get md
    NAME    HOST               THEME   REPLICAS   READY   AGE
    guide   docs.example.com   light   2                  <AGE>
    $ kubectl get md guide -o jsonpath={.spec.language}
    en
    $ kubectl explain md.spec.language
    GROUP:      view.example.com
    KIND:       MarkdownView
    VERSION:    v1

    FIELD: language <string>


    DESCRIPTION:
        The language of the pages.
    ");
    insta::assert_snapshot!(cluster.feed("replace -f -", &DEFINITION.replace("scope: Namespaced", "scope: Cluster")), @r#"
    --- stderr
    The CustomResourceDefinition "markdownviews.view.example.com" is invalid: spec.scope: Invalid value: "Cluster": field is immutable
    --- exit status 1
    "#);
}

#[test]
fn a_file_with_a_crd_and_its_object_needs_two_applies() {
    let cluster = Cluster::start();
    // kubectl looks up the kinds of all objects before it sends the first one, with any server.
    let both = [DEFINITION, GUIDE].join("---\n");
    insta::assert_snapshot!(cluster.feed("apply -f -", &both), @r#"
    customresourcedefinition.apiextensions.k8s.io/markdownviews.view.example.com created
    --- stderr
    error: resource mapping not found for name: "guide" namespace: "" from "STDIN": no matches for kind "MarkdownView" in version "view.example.com/v1"
    ensure CRDs are installed first
    --- exit status 1
    "#);
    insta::assert_snapshot!(cluster.feed("apply -f -", &both), @"
    customresourcedefinition.apiextensions.k8s.io/markdownviews.view.example.com unchanged
    markdownview.view.example.com/guide created
    ");
    let other = both.replace("view.example.com", "page.example.com");
    insta::assert_snapshot!(cluster.feed("apply --server-side -f -", &other), @r#"
    customresourcedefinition.apiextensions.k8s.io/markdownviews.page.example.com serverside-applied
    --- stderr
    error: resource mapping not found for name: "guide" namespace: "" from "STDIN": no matches for kind "MarkdownView" in version "page.example.com/v1"
    ensure CRDs are installed first
    --- exit status 1
    "#);
    insta::assert_snapshot!(cluster.feed("apply --server-side -f -", &other), @"
    customresourcedefinition.apiextensions.k8s.io/markdownviews.page.example.com serverside-applied
    markdownview.page.example.com/guide serverside-applied
    ");
    insta::assert_snapshot!(cluster.session("
        get crd -o name
        get markdownviews.view.example.com,markdownviews.page.example.com -o name
    "), @"
    $ kubectl get crd -o name
    customresourcedefinition.apiextensions.k8s.io/markdownviews.page.example.com
    customresourcedefinition.apiextensions.k8s.io/markdownviews.view.example.com
    $ kubectl get markdownviews.view.example.com,markdownviews.page.example.com -o name
    markdownview.view.example.com/guide
    markdownview.page.example.com/guide
    ");
    // The object is deleted with its CRD before kubectl deletes it.
    insta::assert_snapshot!(cluster.feed("delete -f -", &other), @r#"
    customresourcedefinition.apiextensions.k8s.io "markdownviews.page.example.com" deleted
    --- stderr
    Error from server (NotFound): error when deleting "STDIN": the server could not find the requested resource (delete markdownviews.page.example.com guide)
    --- exit status 1
    "#);
    insta::assert_snapshot!(cluster.feed("delete --ignore-not-found -f -", &both), @r#"customresourcedefinition.apiextensions.k8s.io "markdownviews.view.example.com" deleted"#);
    insta::assert_snapshot!(cluster.kubectl("get crd -o name"), @"");
}

#[test]
fn deleting_a_crd_deletes_its_objects_and_ends_watches() {
    let cluster = with_guide();
    let mut watch = cluster.background("get mdv -w --output-watch-events -v=6");
    watch.line_with("watch=true");
    insta::assert_snapshot!(cluster.kubectl("delete crd markdownviews.view.example.com"), @r#"customresourcedefinition.apiextensions.k8s.io "markdownviews.view.example.com" deleted"#);
    insta::assert_snapshot!(watch.end().shown(), @"
    EVENT      NAME    THEME   REPLICAS   READY   AGE
    ADDED      guide   light   2                  <AGE>
    DELETED    guide   light   2                  <AGE>
    ");
    insta::assert_snapshot!(cluster.session("
        get mdv
        api-resources --api-group=view.example.com
        get mdv
        get crd
    "), @r#"
    $ kubectl get mdv
    --- stderr
    Error from server (NotFound): Unable to list "view.example.com/v1, Resource=markdownviews": the server could not find the requested resource (get markdownviews.view.example.com)
    --- exit status 1
    $ kubectl api-resources --api-group=view.example.com
    NAME   SHORTNAMES   APIVERSION   NAMESPACED   KIND
    $ kubectl get mdv
    --- stderr
    error: the server doesn't have a resource type "mdv"
    --- exit status 1
    $ kubectl get crd
    --- stderr
    No resources found
    "#);
    // A recreated CRD starts without objects.
    cluster.create(DEFINITION);
    insta::assert_snapshot!(cluster.kubectl("get mdv"), @"
    --- stderr
    No resources found in default namespace.
    ");
}

#[test]
fn a_crd_is_deleted_after_the_last_finalizer_of_its_objects() {
    let cluster = with_guide();
    insta::assert_snapshot!(cluster.session(r#"
        patch mdv guide --type=merge -p '{"metadata":{"finalizers":["view.example.com/hold"]}}'
        delete crd markdownviews.view.example.com --wait=false
        get mdv
        get crd markdownviews.view.example.com -o 'jsonpath={range .status.conditions[*]}{.type}={.status} {.reason}: {.message}{"\n"}{end}'
        get crd markdownviews.view.example.com -o jsonpath={.metadata.finalizers}
    "#), @r#"
    $ kubectl patch mdv guide --type=merge -p '{"metadata":{"finalizers":["view.example.com/hold"]}}'
    markdownview.view.example.com/guide patched
    $ kubectl delete crd markdownviews.view.example.com --wait=false
    customresourcedefinition.apiextensions.k8s.io "markdownviews.view.example.com" deleted
    $ kubectl get mdv
    NAME    THEME   REPLICAS   READY   AGE
    guide   light   2                  <AGE>
    $ kubectl get crd markdownviews.view.example.com -o 'jsonpath={range .status.conditions[*]}{.type}={.status} {.reason}: {.message}{"\n"}{end}'
    NamesAccepted=True NoConflicts: no conflicts found
    Established=True InitialNamesAccepted: the initial names have been accepted
    Terminating=True InstanceDeletionInProgress: CustomResource deletion is in progress
    $ kubectl get crd markdownviews.view.example.com -o jsonpath={.metadata.finalizers}
    ["customresourcecleanup.apiextensions.k8s.io"]
    "#);
    insta::assert_snapshot!(cluster.feed("create -f -", &GUIDE.replace("guide", "late")), @r#"
    --- stderr
    Error from server (Forbidden): error when creating "STDIN": markdownviews.view.example.com "late" is forbidden: create not allowed while custom resource definition is terminating
    --- exit status 1
    "#);
    let mut wait =
        cluster.background("wait --for=delete crd/markdownviews.view.example.com --timeout=30s -v=6");
    wait.line_with("watch=true");
    insta::assert_snapshot!(cluster.session(r#"
        patch mdv guide --type=merge -p '{"metadata":{"finalizers":null}}'
    "#), @r#"
    $ kubectl patch mdv guide --type=merge -p '{"metadata":{"finalizers":null}}'
    markdownview.view.example.com/guide patched
    "#);
    wait.end().log();
    insta::assert_snapshot!(cluster.kubectl("get crd"), @"
    --- stderr
    No resources found
    ");
}

#[test]
fn an_invalid_crd_is_rejected() {
    let cluster = Cluster::start();
    let create = |definition: &str| cluster.feed("create -f -", definition);
    insta::assert_snapshot!(create(&DEFINITION.replace("type: object\n        required: [spec]", "required: [spec]")), @r#"
    --- stderr
    The CustomResourceDefinition "markdownviews.view.example.com" is invalid: spec.versions[0].schema.openAPIV3Schema.type: Required value: must not be empty at the root
    --- exit status 1
    "#);
    insta::assert_snapshot!(create(&DEFINITION.replace("self.replicas <=", "self.repicas <=")), @r#"
    --- stderr
    The CustomResourceDefinition "markdownviews.view.example.com" is invalid: spec.versions[0].schema.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule: Invalid value: {"Rule":"self.repicas \u003c= self.maxReplicas","Message":"there may not be more than maxReplicas","MessageExpression":"","Reason":null,"FieldPath":".replicas","OptionalOldSelf":null}: compilation failed: ERROR: <input>:1:5: undefined field 'repicas'
     | self.repicas <= self.maxReplicas
     | ....^
    --- exit status 1
    "#);
    insta::assert_snapshot!(create(&DEFINITION.replace("default: light", "default: pink")), @r#"
    --- stderr
    The CustomResourceDefinition "markdownviews.view.example.com" is invalid: spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[theme].default: Unsupported value: "pink": supported values: "light", "dark", "sepia"
    --- exit status 1
    "#);
    insta::assert_snapshot!(create(&DEFINITION.replace("names:\n    {kind", "name:\n    {kind")), @r#"
    --- stderr
    Error from server (BadRequest): error when creating "STDIN": CustomResourceDefinition in version "v1" cannot be handled as a CustomResourceDefinition: strict decoding error: unknown field "spec.name"
    --- exit status 1
    "#);
    insta::assert_snapshot!(create(&DEFINITION.replace("name: markdownviews.", "name: views.")), @r#"
    --- stderr
    The CustomResourceDefinition "views.view.example.com" is invalid: metadata.name: Invalid value: "views.view.example.com": must be spec.names.plural+"."+spec.group
    --- exit status 1
    "#);
    create(DEFINITION).result();
    // Another CRD already uses the names.
    let same = DEFINITION
        .replace("name: markdownviews.", "name: pages.")
        .replace("plural: markdownviews", "plural: pages");
    create(&same).result();
    insta::assert_snapshot!(cluster.session(r#"
        get crd pages.view.example.com -o 'jsonpath={range .status.conditions[*]}{.type}={.status} {.reason}: {.message}{"\n"}{end}'
        get pages
        wait --for=condition=NamesAccepted=False crd/pages.view.example.com
    "#), @r#"
    $ kubectl get crd pages.view.example.com -o 'jsonpath={range .status.conditions[*]}{.type}={.status} {.reason}: {.message}{"\n"}{end}'
    NamesAccepted=False ListKindConflict: "MarkdownViewList" is already in use
    Established=False NotAccepted: not all names are accepted
    $ kubectl get pages
    --- stderr
    error: the server doesn't have a resource type "pages"
    --- exit status 1
    $ kubectl wait --for=condition=NamesAccepted=False crd/pages.view.example.com
    customresourcedefinition.apiextensions.k8s.io/pages.view.example.com condition met
    "#);
}
