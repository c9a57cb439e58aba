//! `kubectl get` of custom resources: names, printer columns and field selectors.

use super::{NOTES, with_guide};

#[test]
fn all_names_of_the_kind_work() {
    let cluster = with_guide();
    insta::assert_snapshot!(cluster.session("
        get mdv
        get markdownview guide
        get markdownviews.view.example.com/guide -o name
        get MarkdownView.v1.view.example.com -o name
        get all
        get docs -A
        get nope.view.example.com
        get mdv nope
    "), @r#"
    $ kubectl get mdv
    NAME    THEME   REPLICAS   READY   AGE
    guide   light   2                  <AGE>
    $ kubectl get markdownview guide
    NAME    THEME   REPLICAS   READY   AGE
    guide   light   2                  <AGE>
    $ kubectl get markdownviews.view.example.com/guide -o name
    markdownview.view.example.com/guide
    $ kubectl get MarkdownView.v1.view.example.com -o name
    markdownview.view.example.com/guide
    $ kubectl get all
    NAME                 TYPE        CLUSTER-IP   EXTERNAL-IP   PORT(S)   AGE
    service/kubernetes   ClusterIP   10.0.0.1     <none>        443/TCP   <AGE>

    NAME                                  THEME   REPLICAS   READY   AGE
    markdownview.view.example.com/guide   light   2                  <AGE>
    $ kubectl get docs -A
    NAMESPACE   NAME    THEME   REPLICAS   READY   AGE
    default     guide   light   2                  <AGE>
    $ kubectl get nope.view.example.com
    --- stderr
    error: the server doesn't have a resource type "nope"
    --- exit status 1
    $ kubectl get mdv nope
    --- stderr
    Error from server (NotFound): markdownviews.view.example.com "nope" not found
    --- exit status 1
    "#);
}

#[test]
fn printer_columns_and_custom_columns_are_shown() {
    let cluster = with_guide();
    cluster.create(NOTES);
    insta::assert_snapshot!(cluster.session("
        get mdv -o wide
        get mdv -A -L app
        get mdv --sort-by=.spec.replicas
        get mdv -o custom-columns=NAME:.metadata.name,PAGES:.spec.pages[*].name,HOST:.spec.host
        get mdv -o 'jsonpath={range .items[*]}{.metadata.name}: {.spec.pages[0].title}{\"\\n\"}{end}'
    "), @r#"
    $ kubectl get mdv -o wide
    NAME    THEME   REPLICAS   IMAGE        READY   AGE
    guide   light   2          mdbook:0.4           <AGE>
    notes   dark    1          mdbook:0.4           <AGE>
    $ kubectl get mdv -A -L app
    NAMESPACE   NAME    THEME   REPLICAS   READY   AGE   APP
    default     guide   light   2                  <AGE> docs
    default     notes   dark    1                  <AGE>
    $ kubectl get mdv --sort-by=.spec.replicas
    NAME    THEME   REPLICAS   READY   AGE
    notes   dark    1                  <AGE>
    guide   light   2                  <AGE>
    $ kubectl get mdv -o custom-columns=NAME:.metadata.name,PAGES:.spec.pages[*].name,HOST:.spec.host
    NAME    PAGES         HOST
    guide   intro,setup   docs.example.com
    notes   all           <none>
    $ kubectl get mdv -o 'jsonpath={range .items[*]}{.metadata.name}: {.spec.pages[0].title}{"\n"}{end}'
    guide: Welcome
    notes:
    "#);
    insta::assert_snapshot!(cluster.kubectl("get mdv notes -o yaml"), @r#"
    apiVersion: view.example.com/v1
    kind: MarkdownView
    metadata:
      creationTimestamp: "<TIME>"
      generation: 1
      name: notes
      namespace: default
      resourceVersion: "<RV>"
      uid: <UID>
    spec:
      image: mdbook:0.4
      maxReplicas: 5
      pages:
      - name: all
      replicas: 1
      theme: dark
    "#);
}

#[test]
fn field_selectors_support_selectable_fields() {
    let cluster = with_guide();
    cluster.create(NOTES);
    insta::assert_snapshot!(cluster.session("
        get mdv --field-selector spec.theme=dark
        get mdv --field-selector spec.theme!=dark,spec.replicas=2
        get mdv --field-selector spec.replicas=7
        get mdv --field-selector metadata.name=notes -o name
        get mdv --field-selector spec.host=docs.example.com
        get markdownviews.v1beta1.view.example.com --field-selector spec.theme=dark
    "), @r#"
    $ kubectl get mdv --field-selector spec.theme=dark
    NAME    THEME   REPLICAS   READY   AGE
    notes   dark    1                  <AGE>
    $ kubectl get mdv --field-selector spec.theme!=dark,spec.replicas=2
    NAME    THEME   REPLICAS   READY   AGE
    guide   light   2                  <AGE>
    $ kubectl get mdv --field-selector spec.replicas=7
    --- stderr
    No resources found in default namespace.
    $ kubectl get mdv --field-selector metadata.name=notes -o name
    markdownview.view.example.com/notes
    $ kubectl get mdv --field-selector spec.host=docs.example.com
    --- stderr
    Error from server (BadRequest): Unable to find "view.example.com/v1, Resource=markdownviews" that match label selector "", field selector "spec.host=docs.example.com": field label not supported: spec.host
    --- exit status 1
    $ kubectl get markdownviews.v1beta1.view.example.com --field-selector spec.theme=dark
    --- stderr
    Warning: view.example.com/v1beta1 MarkdownView is deprecated; use view.example.com/v1 MarkdownView
    Error from server (BadRequest): Unable to find "view.example.com/v1beta1, Resource=markdownviews" that match label selector "", field selector "spec.theme=dark": field label not supported: spec.theme
    --- exit status 1
    "#);
    let mut watch = cluster.background("get mdv -w --field-selector spec.theme=dark --output-watch-events");
    watch.line_with("notes");
    cluster.kubectl(r#"patch mdv guide --type=merge -p {"spec":{"theme":"dark"}}"#).result();
    watch.line_with("guide");
    cluster.kubectl(r#"patch mdv notes --type=merge -p {"spec":{"theme":"sepia"}}"#).result();
    watch.line_with("notes");
    insta::assert_snapshot!(watch.stop(), @"
    EVENT      NAME    THEME   REPLICAS   READY   AGE
    ADDED      notes   dark    1                  <AGE>
    ADDED      guide   dark    2                  <AGE>
    DELETED    notes   dark    1                  <AGE>
    ");
    insta::assert_snapshot!(cluster.session("
        delete mdv --field-selector spec.theme=sepia
        get mdv -o name
    "), @r#"
    $ kubectl delete mdv --field-selector spec.theme=sepia
    markdownview.view.example.com "notes" deleted
    $ kubectl get mdv -o name
    markdownview.view.example.com/guide
    "#);
}

#[test]
fn describe_shows_all_fields() {
    let cluster = with_guide();
    insta::assert_snapshot!(cluster.kubectl("describe mdv guide"), @"
    Name:         guide
    Namespace:    default
    Labels:       app=docs
    Annotations:  <none>
    API Version:  view.example.com/v1
    Kind:         MarkdownView
    Metadata:
      Creation Timestamp:  <TIME>
      Generation:          1
      Resource Version:    <RV>
      UID:                 <UID>
    Spec:
      Host:          docs.example.com
      Image:         mdbook:0.4
      Max Replicas:  5
      Pages:
        Name:    intro
        Text:    Hello there.
        Title:   Welcome
        Name:    setup
        Title:   Set up
      Replicas:  2
      Tags:
        one
        two
      Theme:  light
    Events:   <none>
    ");
}
