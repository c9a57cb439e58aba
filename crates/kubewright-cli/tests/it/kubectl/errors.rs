//! API server errors, as kubectl prints them.

use super::cluster::Cluster;
use super::objects::{SETTINGS, SETTINGS_AND_WEB};

const CREATE: &str = "create -f -";

#[test]
fn missing_objects_are_not_found() {
    let cluster = Cluster::start();
    insta::assert_snapshot!(cluster.session("
        get pod nope
        get deployment nope -n nowhere
        get namespace nope
        describe pod nope
        label pod nope a=b
        get nonsense
    "), @r#"
    $ kubectl get pod nope
    --- stderr
    Error from server (NotFound): pods "nope" not found
    --- exit status 1
    $ kubectl get deployment nope -n nowhere
    --- stderr
    Error from server (NotFound): namespaces "nowhere" not found
    --- exit status 1
    $ kubectl get namespace nope
    --- stderr
    Error from server (NotFound): namespaces "nope" not found
    --- exit status 1
    $ kubectl describe pod nope
    --- stderr
    Error from server (NotFound): pods "nope" not found
    --- exit status 1
    $ kubectl label pod nope a=b
    --- stderr
    Error from server (NotFound): pods "nope" not found
    --- exit status 1
    $ kubectl get nonsense
    --- stderr
    error: the server doesn't have a resource type "nonsense"
    --- exit status 1
    "#);
    insta::assert_snapshot!(cluster.feed("create -n nowhere -f -", SETTINGS), @r#"
    --- stderr
    Error from server (NotFound): error when creating "STDIN": namespaces "nowhere" not found
    --- exit status 1
    "#);
}

#[test]
fn invalid_fields_are_listed() {
    let cluster = Cluster::start();
    let web = SETTINGS_AND_WEB.split("---\n").nth(1).expect("two documents");
    insta::assert_snapshot!(cluster.feed(CREATE, &SETTINGS.replace("settings", "Not_Valid")), @r#"
    --- stderr
    The ConfigMap "Not_Valid" is invalid: metadata.name: Invalid value: "Not_Valid": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
    --- exit status 1
    "#);
    insta::assert_snapshot!(cluster.feed(CREATE, &web.replace("matchLabels: {app: web}", "matchLabels: {app: other}")), @r#"
    --- stderr
    The Deployment "web" is invalid: spec.template.metadata.labels: Invalid value: {"app":"web"}: `selector` does not match template `labels`
    --- exit status 1
    "#);
    insta::assert_snapshot!(cluster.feed(CREATE, &web.replace("containerPort: 80", "containerPort: 80000").replace("image: nginx:1.27", "imagePullPolicy: Never")), @r#"
    --- stderr
    The Deployment "web" is invalid:
    * spec.template.spec.containers[0].image: Required value
    * spec.template.spec.containers[0].ports[0].containerPort: Invalid value: 80000: must be between 1 and 65535, inclusive
    --- exit status 1
    "#);
    insta::assert_snapshot!(cluster.feed(CREATE, &web.replace("replicas: 2", "replicas: two")), @r#"
    --- stderr
    Error from server (BadRequest): error when creating "STDIN": Deployment in version "v1" cannot be handled as a Deployment: json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32
    --- exit status 1
    "#);
}

#[test]
fn immutable_fields_are_reported() {
    let cluster = Cluster::with(SETTINGS_AND_WEB);
    insta::assert_snapshot!(cluster.session(r#"
        patch deployment web --type=merge -p '{"spec":{"selector":{"matchLabels":{"app":"other"}},"template":{"metadata":{"labels":{"app":"other"}}}}}'
        patch configmap settings --type=merge -p '{"metadata":{"name":"other"}}'
        patch service kubernetes --type=merge -p '{"spec":{"clusterIP":"10.0.0.2","clusterIPs":["10.0.0.2"]}}'
        patch deployment web -p nonsense
    "#), @r#"
    $ kubectl patch deployment web --type=merge -p '{"spec":{"selector":{"matchLabels":{"app":"other"}},"template":{"metadata":{"labels":{"app":"other"}}}}}'
    --- stderr
    The Deployment "web" is invalid: spec.selector: Invalid value: {"matchLabels":{"app":"other"}}: field is immutable
    --- exit status 1
    $ kubectl patch configmap settings --type=merge -p '{"metadata":{"name":"other"}}'
    --- stderr
    Error from server (BadRequest): the name of the object (other) does not match the name on the URL (settings)
    --- exit status 1
    $ kubectl patch service kubernetes --type=merge -p '{"spec":{"clusterIP":"10.0.0.2","clusterIPs":["10.0.0.2"]}}'
    --- stderr
    The Service "kubernetes" is invalid: spec.clusterIPs[0]: Invalid value: ["10.0.0.2"]: may not change once set
    --- exit status 1
    $ kubectl patch deployment web -p nonsense
    --- stderr
    Error from server (BadRequest): json: cannot unmarshal string into Go value of type map[string]interface {}
    --- exit status 1
    "#);
}

#[test]
fn unknown_and_duplicate_fields_are_rejected_or_warned_about() {
    let cluster = Cluster::start();
    let unknown = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"dta":{"x":"y"}}"#;
    insta::assert_snapshot!(cluster.feed(CREATE, unknown), @r#"
    --- stderr
    Error from server (BadRequest): error when creating "STDIN": ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field "dta"
    --- exit status 1
    "#);
    insta::assert_snapshot!(cluster.feed("create --validate=warn -f -", unknown), @r#"
    configmap/a created
    --- stderr
    Warning: unknown field "dta"
    "#);
    // kubectl drops duplicate fields when it reads a file; a `--raw` body is sent unchanged.
    let twice = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b"},"data":{"x":"y","x":"z"}}"#;
    let raw = "create --raw /api/v1/namespaces/default/configmaps?fieldValidation=Strict -f -";
    insta::assert_snapshot!(cluster.feed(raw, twice), @r#"
    --- stderr
    Error from server (BadRequest): ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: duplicate field "data.x"
    --- exit status 1
    "#);
    insta::assert_snapshot!(cluster.feed(CREATE, twice), @"configmap/b created");
    insta::assert_snapshot!(cluster.feed("create --validate=ignore -f -", &unknown.replace("\"a\"", "\"c\"")), @"configmap/c created");
}

#[test]
fn conflicts_are_reported() {
    let cluster = Cluster::with(SETTINGS);
    insta::assert_snapshot!(cluster.session(r#"
        patch configmap settings --type=merge -p '{"metadata":{"resourceVersion":"1"},"data":{"colour":"red"}}'
        label configmap settings a=b --resource-version=1
    "#), @r#"
    $ kubectl patch configmap settings --type=merge -p '{"metadata":{"resourceVersion":"1"},"data":{"colour":"red"}}'
    --- stderr
    Error from server (Conflict): Operation cannot be fulfilled on configmaps "settings": the object has been modified; please apply your changes to the latest version and try again
    --- exit status 1
    $ kubectl label configmap settings a=b --resource-version=1
    --- stderr
    Error from server (Conflict): Operation cannot be fulfilled on configmaps "settings": the object has been modified; please apply your changes to the latest version and try again
    --- exit status 1
    "#);
}

#[test]
fn deprecated_versions_cause_a_warning() {
    let cluster = Cluster::start();
    insta::assert_snapshot!(cluster.session("
        get componentstatuses -o name
        get endpoints -o name
    "), @"
    $ kubectl get componentstatuses -o name
    componentstatus/scheduler
    componentstatus/controller-manager
    componentstatus/etcd-0
    --- stderr
    Warning: v1 ComponentStatus is deprecated in v1.19+
    $ kubectl get endpoints -o name
    endpoints/kubernetes
    --- stderr
    Warning: v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice
    ");
}
