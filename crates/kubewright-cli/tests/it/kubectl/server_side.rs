//! `kubectl apply --server-side` of built-in kinds, and the resulting field managers.

use super::cluster::Cluster;
use super::objects::SETTINGS_AND_WEB;

/// The field managers and operations, sorted.
#[track_caller]
pub(crate) fn managers(cluster: &Cluster, object: &str) -> String {
    let path = r#"{range .metadata.managedFields[*]}{.manager} {.operation} {.subresource}{"\n"}{end}"#;
    let shown = cluster.kubectl(&format!("get {object} -o 'jsonpath={path}'")).result();
    let mut managers: Vec<&str> = shown.lines().map(str::trim_end).collect();
    managers.sort_unstable();
    managers.join("\n")
}

#[test]
fn server_side_apply_of_a_deployment_reports_conflicts() {
    let cluster = Cluster::start();
    let apply =
        |options: &str, objects: &str| cluster.feed(&format!("apply --server-side {options} -f -"), objects);
    insta::assert_snapshot!(apply("", SETTINGS_AND_WEB), @"
    configmap/settings serverside-applied
    deployment.apps/web serverside-applied
    ");
    insta::assert_snapshot!(apply("", SETTINGS_AND_WEB), @"
    configmap/settings serverside-applied
    deployment.apps/web serverside-applied
    ");
    insta::assert_snapshot!(cluster.session("
        get deployment web -o yaml --show-managed-fields
        scale deployment web --replicas=4
        set image deployment/web web=nginx:2
        label configmap settings app=other --overwrite
    "), @r#"
    $ kubectl get deployment web -o yaml --show-managed-fields
    apiVersion: apps/v1
    kind: Deployment
    metadata:
      creationTimestamp: "<TIME>"
      generation: 1
      labels:
        app: web
      managedFields:
      - apiVersion: apps/v1
        fieldsType: FieldsV1
        fieldsV1:
          f:metadata:
            f:labels:
              f:app: {}
          f:spec:
            f:replicas: {}
            f:selector: {}
            f:template:
              f:metadata:
                f:labels:
                  f:app: {}
              f:spec:
                f:containers:
                  k:{"name":"web"}:
                    .: {}
                    f:image: {}
                    f:name: {}
                    f:ports:
                      k:{"containerPort":80,"protocol":"TCP"}:
                        .: {}
                        f:containerPort: {}
                        f:name: {}
        manager: kubectl
        operation: Apply
        time: "<TIME>"
      name: web
      namespace: default
      resourceVersion: "<RV>"
      uid: <UID>
    spec:
      progressDeadlineSeconds: 600
      replicas: 2
      revisionHistoryLimit: 10
      selector:
        matchLabels:
          app: web
      strategy:
        rollingUpdate:
          maxSurge: 25%
          maxUnavailable: 25%
        type: RollingUpdate
      template:
        metadata:
          labels:
            app: web
        spec:
          containers:
          - image: nginx:1.27
            imagePullPolicy: IfNotPresent
            name: web
            ports:
            - containerPort: 80
              name: http
              protocol: TCP
            resources: {}
            terminationMessagePath: /dev/termination-log
            terminationMessagePolicy: File
          dnsPolicy: ClusterFirst
          restartPolicy: Always
          schedulerName: default-scheduler
          securityContext: {}
          terminationGracePeriodSeconds: 30
    status: {}
    $ kubectl scale deployment web --replicas=4
    deployment.apps/web scaled
    $ kubectl set image deployment/web web=nginx:2
    deployment.apps/web image updated
    $ kubectl label configmap settings app=other --overwrite
    configmap/settings labeled
    "#);
    insta::assert_snapshot!(apply("", SETTINGS_AND_WEB), @r#"
    --- stderr
    Apply failed with 1 conflict: conflict with "kubectl-label" using v1: .metadata.labels.app
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
    Apply failed with 2 conflicts: conflicts with "kubectl" with subresource "scale" using apps/v1:
    - .spec.replicas
    conflicts with "kubectl-set" using apps/v1:
    - .spec.template.spec.containers[name="web"].image
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
    insta::assert_snapshot!(apply("--force-conflicts", SETTINGS_AND_WEB), @"
    configmap/settings serverside-applied
    deployment.apps/web serverside-applied
    ");
    insta::assert_snapshot!(managers(&cluster, "deployment web"), @"kubectl Apply");
    // Another manager's sidecar stays; the dropped port is removed.
    let sidecar = r#"{"spec":{"template":{"spec":{"containers":[{"name":"sidecar","image":"envoy"}]}}}}"#;
    cluster.kubectl(&format!("patch deployment web -p '{sidecar}'")).result();
    let ports = SETTINGS_AND_WEB.replace("        ports: [{containerPort: 80, name: http}]\n", "");
    apply("", &ports).result();
    insta::assert_snapshot!(cluster.kubectl("get deployment web -o 'jsonpath={range .spec.template.spec.containers[*]}{.name}={.image} {.ports}{\"\\n\"}{end}'"), @"
    sidecar=envoy
    web=nginx:1.27
    ");
}

#[test]
fn apply_migrates_between_client_and_server_side() {
    let cluster = Cluster::start();
    cluster.feed("apply -f -", SETTINGS_AND_WEB).result();
    insta::assert_snapshot!(managers(&cluster, "deployment web"), @"kubectl-client-side-apply Update");
    insta::assert_snapshot!(cluster.feed("apply --server-side -f -", &SETTINGS_AND_WEB.replace("1.27", "1.28")), @"
    configmap/settings serverside-applied
    deployment.apps/web serverside-applied
    ");
    insta::assert_snapshot!(managers(&cluster, "deployment web"), @"
    kubectl Apply
    kubectl-last-applied Apply
    ");
    insta::assert_snapshot!(cluster.feed("apply -f -", &SETTINGS_AND_WEB.replace("1.27", "1.29")), @"
    configmap/settings configured
    deployment.apps/web configured
    ");
    insta::assert_snapshot!(managers(&cluster, "deployment web"), @"
    kubectl Apply
    kubectl-client-side-apply Update
    ");
    insta::assert_snapshot!(cluster.feed("apply --server-side -f -", &SETTINGS_AND_WEB.replace("replicas: 2", "paused: true")), @"
    configmap/settings serverside-applied
    deployment.apps/web serverside-applied
    ");
    insta::assert_snapshot!(cluster.kubectl("get deployment web -o jsonpath={.spec.replicas},{.spec.paused},{.spec.template.spec.containers[*].image}"), @"1,true,nginx:1.27");
}

#[test]
fn client_side_apply_works_after_server_side_apply() {
    let cluster = Cluster::start();
    cluster.feed("apply --server-side -f -", SETTINGS_AND_WEB).result();
    insta::assert_snapshot!(cluster.feed("apply -f -", &SETTINGS_AND_WEB.replace("1.27", "1.28")), @"
    configmap/settings configured
    deployment.apps/web configured
    --- stderr
    Warning: resource configmaps/settings is missing the kubectl.kubernetes.io/last-applied-configuration annotation which is required by kubectl apply. kubectl apply should only be used on resources created declaratively by either kubectl create --save-config or kubectl apply. The missing annotation will be patched automatically.
    Warning: resource deployments/web is missing the kubectl.kubernetes.io/last-applied-configuration annotation which is required by kubectl apply. kubectl apply should only be used on resources created declaratively by either kubectl create --save-config or kubectl apply. The missing annotation will be patched automatically.
    ");
    insta::assert_snapshot!(managers(&cluster, "deployment web"), @"
    kubectl Apply
    kubectl-client-side-apply Update
    ");
    insta::assert_snapshot!(cluster.feed("apply -f -", &SETTINGS_AND_WEB.replace("1.27", "1.28")), @"
    configmap/settings unchanged
    deployment.apps/web unchanged
    ");
}

#[test]
fn managed_fields_are_shown_on_request() {
    let cluster = Cluster::with(SETTINGS_AND_WEB);
    cluster.kubectl(r#"patch configmap settings -p {"data":{"shape":"round"}}"#).result();
    cluster.kubectl("annotate configmap settings note=x --field-manager=me").result();
    insta::assert_snapshot!(cluster.session("
        get configmap settings -o yaml
        get configmap settings -o yaml --show-managed-fields
    "), @r#"
    $ kubectl get configmap settings -o yaml
    apiVersion: v1
    data:
      colour: blue
      shape: round
      size: large
    kind: ConfigMap
    metadata:
      annotations:
        note: x
      creationTimestamp: "<TIME>"
      labels:
        app: web
      name: settings
      namespace: default
      resourceVersion: "<RV>"
      uid: <UID>
    $ kubectl get configmap settings -o yaml --show-managed-fields
    apiVersion: v1
    data:
      colour: blue
      shape: round
      size: large
    kind: ConfigMap
    metadata:
      annotations:
        note: x
      creationTimestamp: "<TIME>"
      labels:
        app: web
      managedFields:
      - apiVersion: v1
        fieldsType: FieldsV1
        fieldsV1:
          f:data:
            .: {}
            f:colour: {}
            f:size: {}
          f:metadata:
            f:labels:
              .: {}
              f:app: {}
        manager: kubectl-create
        operation: Update
        time: "<TIME>"
      - apiVersion: v1
        fieldsType: FieldsV1
        fieldsV1:
          f:data:
            f:shape: {}
        manager: kubectl-patch
        operation: Update
        time: "<TIME>"
      - apiVersion: v1
        fieldsType: FieldsV1
        fieldsV1:
          f:metadata:
            f:annotations:
              .: {}
              f:note: {}
        manager: me
        operation: Update
        time: "<TIME>"
      name: settings
      namespace: default
      resourceVersion: "<RV>"
      uid: <UID>
    "#);
}
