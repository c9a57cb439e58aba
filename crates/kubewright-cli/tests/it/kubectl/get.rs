//! `kubectl get`: tables, output formats, selectors and paging.

use serde_json::Value;

use super::cluster::Cluster;
use super::objects::{NODE, PODS, SETTINGS_AND_WEB};

#[test]
fn get_shows_normal_and_wide_columns() {
    let cluster = Cluster::with(&[NODE, PODS, SETTINGS_AND_WEB].join("---\n"));
    insta::assert_snapshot!(cluster.session("
        get pods
        get pods -o wide
        get deployments
        get deployment web -o wide
        get configmap settings
        get services
        get nodes -o wide
        get namespaces
    "), @"
    $ kubectl get pods
    NAME   READY   STATUS    RESTARTS   AGE
    a      0/1     Pending   0          <AGE>
    b      0/2     Pending   0          <AGE>
    c      0/1     Pending   0          <AGE>
    $ kubectl get pods -o wide
    NAME   READY   STATUS    RESTARTS   AGE   IP       NODE     NOMINATED NODE   READINESS GATES
    a      0/1     Pending   0          <AGE> <none>   <none>   <none>           <none>
    b      0/2     Pending   0          <AGE> <none>   <none>   <none>           <none>
    c      0/1     Pending   0          <AGE> <none>   worker   <none>           <none>
    $ kubectl get deployments
    NAME   READY   UP-TO-DATE   AVAILABLE   AGE
    web    0/2     0            0           <AGE>
    $ kubectl get deployment web -o wide
    NAME   READY   UP-TO-DATE   AVAILABLE   AGE   CONTAINERS   IMAGES       SELECTOR
    web    0/2     0            0           <AGE> web          nginx:1.27   app=web
    $ kubectl get configmap settings
    NAME       DATA   AGE
    settings   2      <AGE>
    $ kubectl get services
    NAME         TYPE        CLUSTER-IP   EXTERNAL-IP   PORT(S)   AGE
    kubernetes   ClusterIP   10.0.0.1     <none>        443/TCP   <AGE>
    $ kubectl get nodes -o wide
    NAME     STATUS    ROLES    AGE   VERSION   INTERNAL-IP   EXTERNAL-IP   OS-IMAGE    KERNEL-VERSION   CONTAINER-RUNTIME
    worker   Unknown   worker   <AGE>           <none>        <none>        <unknown>   <unknown>        <unknown>
    $ kubectl get namespaces
    NAME              STATUS   AGE
    default           Active   <AGE>
    kube-node-lease   Active   <AGE>
    kube-public       Active   <AGE>
    kube-system       Active   <AGE>
    ");
}

#[test]
fn get_shows_labels_as_columns_and_sorts_by_a_path() {
    let cluster = Cluster::with(PODS);
    insta::assert_snapshot!(cluster.session("
        get pods --show-labels
        get pods -L app,tier
        get pods --sort-by={.metadata.labels.tier} -o name
    "), @"
    $ kubectl get pods --show-labels
    NAME   READY   STATUS    RESTARTS   AGE   LABELS
    a      0/1     Pending   0          <AGE> app=web,tier=front
    b      0/2     Pending   0          <AGE> app=web,tier=back
    c      0/1     Pending   0          <AGE> app=db
    $ kubectl get pods -L app,tier
    NAME   READY   STATUS    RESTARTS   AGE   APP   TIER
    a      0/1     Pending   0          <AGE> web   front
    b      0/2     Pending   0          <AGE> web   back
    c      0/1     Pending   0          <AGE> db
    $ kubectl get pods --sort-by={.metadata.labels.tier} -o name
    pod/c
    pod/b
    pod/a
    ");
}

#[test]
fn get_all_shows_the_category() {
    let cluster = Cluster::with(&[PODS, SETTINGS_AND_WEB].join("---\n"));
    insta::assert_snapshot!(cluster.session("
        get all
        get all -A
        get all -n kube-public
    "), @"
    $ kubectl get all
    NAME    READY   STATUS    RESTARTS   AGE
    pod/a   0/1     Pending   0          <AGE>
    pod/b   0/2     Pending   0          <AGE>
    pod/c   0/1     Pending   0          <AGE>

    NAME                 TYPE        CLUSTER-IP   EXTERNAL-IP   PORT(S)   AGE
    service/kubernetes   ClusterIP   10.0.0.1     <none>        443/TCP   <AGE>

    NAME                  READY   UP-TO-DATE   AVAILABLE   AGE
    deployment.apps/web   0/2     0            0           <AGE>
    $ kubectl get all -A
    NAMESPACE   NAME    READY   STATUS    RESTARTS   AGE
    default     pod/a   0/1     Pending   0          <AGE>
    default     pod/b   0/2     Pending   0          <AGE>
    default     pod/c   0/1     Pending   0          <AGE>

    NAMESPACE   NAME                 TYPE        CLUSTER-IP   EXTERNAL-IP   PORT(S)   AGE
    default     service/kubernetes   ClusterIP   10.0.0.1     <none>        443/TCP   <AGE>

    NAMESPACE   NAME                  READY   UP-TO-DATE   AVAILABLE   AGE
    default     deployment.apps/web   0/2     0            0           <AGE>
    $ kubectl get all -n kube-public
    --- stderr
    No resources found in kube-public namespace.
    ");
}

#[test]
fn get_supports_name_jsonpath_and_custom_columns() {
    let cluster = Cluster::with(PODS);
    insta::assert_snapshot!(cluster.session("
        get pods -o name
        get pod a -o jsonpath={.spec.containers[0].image}{\"\\n\"}
        get pods -o jsonpath={.items[*].metadata.name}{\"\\n\"}
        get pods -o custom-columns=POD:.metadata.name,IMAGES:.spec.containers[*].image,NODE:.spec.nodeName
        get pods -o go-template={{range.items}}{{.metadata.name}}/{{.status.phase}}{{\"\\n\"}}{{end}}
    "), @r#"
    $ kubectl get pods -o name
    pod/a
    pod/b
    pod/c
    $ kubectl get pod a -o jsonpath={.spec.containers[0].image}{"\n"}
    nginx:1.27
    $ kubectl get pods -o jsonpath={.items[*].metadata.name}{"\n"}
    a b c
    $ kubectl get pods -o custom-columns=POD:.metadata.name,IMAGES:.spec.containers[*].image,NODE:.spec.nodeName
    POD   IMAGES               NODE
    a     nginx:1.27           <none>
    b     nginx:1.28,busybox   <none>
    c     postgres:17          worker
    $ kubectl get pods -o go-template={{range.items}}{{.metadata.name}}/{{.status.phase}}{{"\n"}}{{end}}
    a/Pending
    b/Pending
    c/Pending
    "#);
}

#[test]
fn get_prints_an_object_as_yaml_with_its_defaults() {
    let cluster = Cluster::with(SETTINGS_AND_WEB);
    insta::assert_snapshot!(cluster.kubectl("get configmap settings -o yaml"), @r#"
    apiVersion: v1
    data:
      colour: blue
      size: large
    kind: ConfigMap
    metadata:
      creationTimestamp: "<TIME>"
      labels:
        app: web
      name: settings
      namespace: default
      resourceVersion: "<RV>"
      uid: <UID>
    "#);
    insta::assert_snapshot!(cluster.kubectl("get deployment web -o yaml"), @r#"
    apiVersion: apps/v1
    kind: Deployment
    metadata:
      creationTimestamp: "<TIME>"
      generation: 1
      labels:
        app: web
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
    "#);
}

#[test]
fn get_prints_a_list_as_json_that_parses() {
    let cluster = Cluster::with(PODS);
    let list: Value = serde_json::from_str(&cluster.kubectl("get pods -o json").result()).expect("JSON");
    assert_eq!((&list["kind"], &list["apiVersion"]), (&"List".into(), &"v1".into()));
    let names: Vec<&str> = list["items"]
        .as_array()
        .expect("items")
        .iter()
        .filter_map(|pod| pod["metadata"]["name"].as_str())
        .collect();
    assert_eq!(names, ["a", "b", "c"]);
    assert!(list["items"].as_array().expect("items").iter().all(|pod| pod["kind"] == "Pod"), "{list:#}");
}

#[test]
fn get_selects_by_labels_and_by_fields() {
    let cluster = Cluster::with(PODS);
    insta::assert_snapshot!(cluster.session("
        get pods -o name -l app=web
        get pods -o name -l app=web,tier!=front
        get pods -o name -l 'tier in (front, back)'
        get pods -o name -l !tier
        get pods -o name --field-selector metadata.name=b
        get pods -o name --field-selector spec.nodeName=worker
        get pods -o name --field-selector spec.nodeName!=worker,metadata.name!=a
        get pods -A -o name --field-selector status.phase=Running
        get pods -l app=none
        get pods --field-selector spec.colour=blue
        get pods -l 'app in web'
    "), @r#"
    $ kubectl get pods -o name -l app=web
    pod/a
    pod/b
    $ kubectl get pods -o name -l app=web,tier!=front
    pod/b
    $ kubectl get pods -o name -l 'tier in (front, back)'
    pod/a
    pod/b
    $ kubectl get pods -o name -l !tier
    pod/c
    $ kubectl get pods -o name --field-selector metadata.name=b
    pod/b
    $ kubectl get pods -o name --field-selector spec.nodeName=worker
    pod/c
    $ kubectl get pods -o name --field-selector spec.nodeName!=worker,metadata.name!=a
    pod/b
    $ kubectl get pods -A -o name --field-selector status.phase=Running
    $ kubectl get pods -l app=none
    --- stderr
    No resources found in default namespace.
    $ kubectl get pods --field-selector spec.colour=blue
    --- stderr
    Error from server (BadRequest): Unable to find "/v1, Resource=pods" that match label selector "", field selector "spec.colour=blue": field label not supported: spec.colour
    --- exit status 1
    $ kubectl get pods -l 'app in web'
    --- stderr
    Error from server (BadRequest): Unable to find "/v1, Resource=pods" that match label selector "app in web", field selector "": unable to parse requirement: found 'web' expected: '('
    --- exit status 1
    "#);
}

#[test]
fn get_reads_a_long_list_in_pages() {
    let cluster = Cluster::with(PODS);
    let answer = cluster.kubectl("get pods --chunk-size=2 -v=6");
    insta::assert_snapshot!(cluster.kubectl("get pods --chunk-size=2"), @"
    NAME   READY   STATUS    RESTARTS   AGE
    a      0/1     Pending   0          <AGE>
    b      0/2     Pending   0          <AGE>
    c      0/1     Pending   0          <AGE>
    ");
    let log = answer.log();
    let pages = log.lines().filter(|line| line.contains("/pods?") && line.contains("limit=2"));
    assert_eq!(pages.count(), 2, "{log}");
    insta::assert_snapshot!(cluster.session("
        get pods --chunk-size=1 -o name
        get pods --chunk-size=1 -o name -l app=web
        get clusterroles --chunk-size=7 -o name --field-selector metadata.name=cluster-admin
    "), @"
    $ kubectl get pods --chunk-size=1 -o name
    pod/a
    pod/b
    pod/c
    $ kubectl get pods --chunk-size=1 -o name -l app=web
    pod/a
    pod/b
    $ kubectl get clusterroles --chunk-size=7 -o name --field-selector metadata.name=cluster-admin
    clusterrole.rbac.authorization.k8s.io/cluster-admin
    ");
}

#[test]
fn get_takes_several_kinds_and_names_at_once() {
    let cluster = Cluster::with(&[PODS, SETTINGS_AND_WEB].join("---\n"));
    insta::assert_snapshot!(cluster.session("
        get pod/a deployment/web
        get po a c -o name
        get deploy.apps,deployments.v1.apps -o name
        get configmaps,pods -l app=web -o name
        get pod a nope --ignore-not-found -o name
    "), @"
    $ kubectl get pod/a deployment/web
    NAME    READY   STATUS    RESTARTS   AGE
    pod/a   0/1     Pending   0          <AGE>

    NAME                  READY   UP-TO-DATE   AVAILABLE   AGE
    deployment.apps/web   0/2     0            0           <AGE>
    $ kubectl get po a c -o name
    pod/a
    pod/c
    $ kubectl get deploy.apps,deployments.v1.apps -o name
    deployment.apps/web
    $ kubectl get configmaps,pods -l app=web -o name
    configmap/settings
    pod/a
    pod/b
    $ kubectl get pod a nope --ignore-not-found -o name
    pod/a
    ");
}
