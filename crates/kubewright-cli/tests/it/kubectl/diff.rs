//! `kubectl diff`, which uses a server-side dry run.

use super::cluster::{Answer, Cluster};
use super::custom::{GUIDE, with_guide};
use super::objects::SETTINGS_AND_WEB;

/// Removes the lines with temporary file names.
fn diff(answer: &Answer) -> String {
    answer
        .to_string()
        .lines()
        .filter(|line| !line.contains("/LIVE-") && !line.contains("/MERGED-"))
        .flat_map(|line| [line, "\n"])
        .collect()
}

#[test]
fn diff_of_a_deployment_shows_the_fields_that_would_change() {
    let cluster = Cluster::start();
    insta::assert_snapshot!(diff(&cluster.feed("diff -f -", SETTINGS_AND_WEB)), @r#"
    @@ -0,0 +1,44 @@
    +apiVersion: apps/v1
    +kind: Deployment
    +metadata:
    +  creationTimestamp: "<TIME>"
    +  generation: 1
    +  labels:
    +    app: web
    +  name: web
    +  namespace: default
    +  uid: <UID>
    +spec:
    +  progressDeadlineSeconds: 600
    +  replicas: 2
    +  revisionHistoryLimit: 10
    +  selector:
    +    matchLabels:
    +      app: web
    +  strategy:
    +    rollingUpdate:
    +      maxSurge: 25%
    +      maxUnavailable: 25%
    +    type: RollingUpdate
    +  template:
    +    metadata:
    +      labels:
    +        app: web
    +    spec:
    +      containers:
    +      - image: nginx:1.27
    +        imagePullPolicy: IfNotPresent
    +        name: web
    +        ports:
    +        - containerPort: 80
    +          name: http
    +          protocol: TCP
    +        resources: {}
    +        terminationMessagePath: /dev/termination-log
    +        terminationMessagePolicy: File
    +      dnsPolicy: ClusterFirst
    +      restartPolicy: Always
    +      schedulerName: default-scheduler
    +      securityContext: {}
    +      terminationGracePeriodSeconds: 30
    +status: {}
    @@ -0,0 +1,12 @@
    +apiVersion: v1
    +data:
    +  colour: blue
    +  size: large
    +kind: ConfigMap
    +metadata:
    +  creationTimestamp: "<TIME>"
    +  labels:
    +    app: web
    +  name: settings
    +  namespace: default
    +  uid: <UID>
    --- exit status 1
    "#);
    cluster.feed("apply -f -", SETTINGS_AND_WEB).result();
    insta::assert_snapshot!(diff(&cluster.feed("diff -f -", SETTINGS_AND_WEB)), @"");
    let changed = SETTINGS_AND_WEB
        .replace("1.27", "1.28")
        .replace(", size: large", "")
        .replace("containerPort: 80, name: http", "containerPort: 8080, name: web");
    insta::assert_snapshot!(diff(&cluster.feed("diff -f -", &changed)), @r#"
    @@ -5,7 +5,7 @@
         kubectl.kubernetes.io/last-applied-configuration: |
           {"apiVersion":"apps/v1","kind":"Deployment","metadata":{"annotations":{},"labels":{"app":"web"},"name":"web","namespace":"default"},"spec":{"replicas":2,"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"image":"nginx:1.27","name":"web","ports":[{"containerPort":80,"name":"http"}]}]}}}}
       creationTimestamp: "<TIME>"
    -  generation: 1
    +  generation: 2
       labels:
         app: web
       name: web
    @@ -30,12 +30,12 @@
             app: web
         spec:
           containers:
    -      - image: nginx:1.27
    +      - image: nginx:1.28
             imagePullPolicy: IfNotPresent
             name: web
             ports:
    -        - containerPort: 80
    -          name: http
    +        - containerPort: 8080
    +          name: web
               protocol: TCP
             resources: {}
             terminationMessagePath: /dev/termination-log
    @@ -1,7 +1,6 @@
     apiVersion: v1
     data:
       colour: blue
    -  size: large
     kind: ConfigMap
     metadata:
       annotations:
    --- exit status 1
    "#);
    // With server-side apply another manager owns the old port.
    insta::assert_snapshot!(diff(&cluster.feed("diff --server-side -f -", &changed)), @r#"
    @@ -3,9 +3,9 @@
     metadata:
       annotations:
         kubectl.kubernetes.io/last-applied-configuration: |
    -      {"apiVersion":"apps/v1","kind":"Deployment","metadata":{"annotations":{},"labels":{"app":"web"},"name":"web","namespace":"default"},"spec":{"replicas":2,"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"image":"nginx:1.27","name":"web","ports":[{"containerPort":80,"name":"http"}]}]}}}}
    +      {"apiVersion":"apps/v1","kind":"Deployment","metadata":{"labels":{"app":"web"},"name":"web","namespace":"default"},"spec":{"replicas":2,"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"image":"nginx:1.28","name":"web","ports":[{"containerPort":8080,"name":"web"}]}]}}}}
       creationTimestamp: "<TIME>"
    -  generation: 1
    +  generation: 2
       labels:
         app: web
       name: web
    @@ -30,13 +30,16 @@
             app: web
         spec:
           containers:
    -      - image: nginx:1.27
    +      - image: nginx:1.28
             imagePullPolicy: IfNotPresent
             name: web
             ports:
             - containerPort: 80
               name: http
               protocol: TCP
    +        - containerPort: 8080
    +          name: web
    +          protocol: TCP
             resources: {}
             terminationMessagePath: /dev/termination-log
             terminationMessagePolicy: File
    @@ -6,7 +6,7 @@
     metadata:
       annotations:
         kubectl.kubernetes.io/last-applied-configuration: |
    -      {"apiVersion":"v1","data":{"colour":"blue","size":"large"},"kind":"ConfigMap","metadata":{"annotations":{},"labels":{"app":"web"},"name":"settings","namespace":"default"}}
    +      {"apiVersion":"v1","data":{"colour":"blue"},"kind":"ConfigMap","metadata":{"labels":{"app":"web"},"name":"settings","namespace":"default"}}
       creationTimestamp: "<TIME>"
       labels:
         app: web
    --- exit status 1
    "#);
    // Nothing was written.
    insta::assert_snapshot!(diff(&cluster.feed("diff -f -", SETTINGS_AND_WEB)), @"");
    insta::assert_snapshot!(diff(&cluster.feed("diff -f -", &SETTINGS_AND_WEB.replace("replicas: 2", "replicas: -2"))), @r#"
    --- stderr
    The Deployment "web" is invalid: spec.replicas: Invalid value: -2: must be greater than or equal to 0
    --- exit status 2
    "#);
}

#[test]
fn diff_of_a_custom_object_shows_the_fields_that_would_change() {
    let cluster = with_guide();
    insta::assert_snapshot!(diff(&cluster.feed("diff -f -", GUIDE)), @"");
    let changed = GUIDE.replace("Welcome", "Hi").replace("one, two", "two, three");
    insta::assert_snapshot!(diff(&cluster.feed("diff -f -", &changed)), @r#"
    @@ -2,7 +2,7 @@
     kind: MarkdownView
     metadata:
       creationTimestamp: "<TIME>"
    -  generation: 1
    +  generation: 2
       labels:
         app: docs
       name: guide
    @@ -16,11 +16,11 @@
       pages:
       - name: intro
         text: Hello there.
    -    title: Welcome
    +    title: Hi
       - name: setup
         title: Set up
       replicas: 2
       tags:
    -  - one
       - two
    +  - three
       theme: light
    --- exit status 1
    "#);
    insta::assert_snapshot!(diff(&cluster.feed("diff --server-side --field-manager=me --force-conflicts -f -", &changed)), @r#"
    @@ -2,7 +2,7 @@
     kind: MarkdownView
     metadata:
       creationTimestamp: "<TIME>"
    -  generation: 1
    +  generation: 2
       labels:
         app: docs
       name: guide
    @@ -16,11 +16,12 @@
       pages:
       - name: intro
         text: Hello there.
    -    title: Welcome
    +    title: Hi
       - name: setup
         title: Set up
       replicas: 2
       tags:
       - one
       - two
    +  - three
       theme: light
    --- exit status 1
    "#);
    insta::assert_snapshot!(diff(&cluster.feed("diff -f -", &GUIDE.replace("replicas: 2", "replicas: 9"))), @r#"
    --- stderr
    The MarkdownView "guide" is invalid: spec.replicas: Invalid value: there may not be more than maxReplicas
    --- exit status 2
    "#);
}
