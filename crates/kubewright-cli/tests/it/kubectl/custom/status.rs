//! The status and scale subresources of custom resources.

use super::with_guide;

const READY: &str =
    r#"{"status":{"replicas":2,"selector":"app=docs","conditions":[{"type":"Ready","status":"True"}]}}"#;

#[test]
fn the_status_is_only_written_through_its_subresource() {
    let cluster = with_guide();
    let patch = |options: &str, patch: &str| {
        cluster.kubectl(&format!("patch mdv guide --type=merge {options} -p '{patch}'"))
    };
    insta::assert_snapshot!(patch("", READY), @"markdownview.view.example.com/guide patched (no change)");
    let mut ready = cluster.background("wait --for=condition=Ready mdv/guide --timeout=30s -v=6");
    ready.line_with("watch=true");
    let mut scaled =
        cluster.background("wait --for=jsonpath={.status.replicas}=2 mdv/guide --timeout=30s -v=6");
    scaled.line_with("watch=true");
    insta::assert_snapshot!(patch("--subresource=status", READY), @"markdownview.view.example.com/guide patched");
    ready.line_with("markdownview.view.example.com/guide condition met");
    scaled.line_with("markdownview.view.example.com/guide condition met");
    insta::assert_snapshot!(patch("--subresource=status", r#"{"status":{"replicas":"two"}}"#), @r#"
    --- stderr
    The MarkdownView "guide" is invalid:
    * status.replicas: Invalid value: "string": replicas in body must be of type integer: "string"
    * .status.replicas: Invalid value: 0: .status.replicas accessor error: two is of the type string, expected int64
    * <nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation
    --- exit status 1
    "#);
    insta::assert_snapshot!(patch("--subresource=status", r#"{"status":{"replicas":2},"spec":{"theme":"dark"}}"#), @"markdownview.view.example.com/guide patched (no change)");
    insta::assert_snapshot!(cluster.session("
        get mdv
        get mdv guide --subresource=status -o jsonpath={.status}
        wait --for=jsonpath={.spec.theme}=light mdv --all
        get mdv guide -o jsonpath={.metadata.generation}
    "), @r#"
    $ kubectl get mdv
    NAME    THEME   REPLICAS   READY   AGE
    guide   light   2          True    <AGE>
    $ kubectl get mdv guide --subresource=status -o jsonpath={.status}
    {"conditions":[{"status":"True","type":"Ready"}],"replicas":2,"selector":"app=docs"}
    $ kubectl wait --for=jsonpath={.spec.theme}=light mdv --all
    markdownview.view.example.com/guide condition met
    $ kubectl get mdv guide -o jsonpath={.metadata.generation}
    1
    "#);
}

#[test]
fn scale_sets_the_replicas() {
    let cluster = with_guide();
    cluster.kubectl(&format!("patch mdv guide --type=merge --subresource=status -p '{READY}'")).result();
    insta::assert_snapshot!(cluster.session("
        scale mdv guide --replicas=3
        scale mdv guide --replicas=4 --current-replicas=1
        scale mdv guide --replicas=9
        get mdv guide --subresource=scale
        get mdv guide --subresource=scale -o yaml
        get mdv
        autoscale mdv guide --min=1 --max=5
        get hpa guide -o jsonpath={.spec.scaleTargetRef}
    "), @r#"
    $ kubectl scale mdv guide --replicas=3
    markdownview.view.example.com/guide scaled
    $ kubectl scale mdv guide --replicas=4 --current-replicas=1
    --- stderr
    error: Expected replicas to be 1, was 3
    --- exit status 1
    $ kubectl scale mdv guide --replicas=9
    --- stderr
    The MarkdownView "guide" is invalid: spec.replicas: Invalid value: there may not be more than maxReplicas
    --- exit status 1
    $ kubectl get mdv guide --subresource=scale
    NAME    DESIRED   AVAILABLE   AGE
    guide   3         2           <AGE>
    $ kubectl get mdv guide --subresource=scale -o yaml
    apiVersion: autoscaling/v1
    kind: Scale
    metadata:
      creationTimestamp: "<TIME>"
      name: guide
      namespace: default
      resourceVersion: "<RV>"
      uid: <UID>
    spec:
      replicas: 3
    status:
      replicas: 2
      selector: app=docs
    $ kubectl get mdv
    NAME    THEME   REPLICAS   READY   AGE
    guide   light   3          True    <AGE>
    $ kubectl autoscale mdv guide --min=1 --max=5
    horizontalpodautoscaler.autoscaling/guide autoscaled
    $ kubectl get hpa guide -o jsonpath={.spec.scaleTargetRef}
    {"apiVersion":"view.example.com/v1","kind":"MarkdownView","name":"guide"}
    "#);
}
