//! Authentication and authorization of kubectl.
//!
//! Reviews and token requests use protobuf, as typed clients of client-go do since 0.32.

use super::cluster::{Answer, Cluster};

#[test]
fn whoami_is_the_administrator_of_the_kubeconfig() {
    let cluster = Cluster::start();
    insta::assert_snapshot!(cluster.kubectl("auth whoami -o jsonpath={.status.userInfo.username},{.status.userInfo.groups}"), @r#"admin,["system:masters","system:authenticated"]"#);
}

#[test]
fn can_i_says_yes_to_the_administrator() {
    let cluster = Cluster::start();
    insta::assert_snapshot!(cluster.session("
        auth can-i create pods
        auth can-i delete nodes
        auth can-i get /healthz
        auth can-i '*' '*' --all-namespaces
    "), @"
    $ kubectl auth can-i create pods
    yes
    $ kubectl auth can-i delete nodes
    yes
    --- stderr
    Warning: resource 'nodes' is not namespace scoped

    $ kubectl auth can-i get /healthz
    yes
    $ kubectl auth can-i '*' '*' --all-namespaces
    yes
    ");
}

#[test]
fn can_i_lists_what_the_administrator_may_do() {
    let cluster = Cluster::start();
    let list = cluster.kubectl("auth can-i --list").result();
    let lines: Vec<Vec<&str>> = list.lines().map(|line| line.split_whitespace().collect()).collect();
    assert!(lines.contains(&vec!["*.*", "[]", "[]", "[*]"]), "{list}");
    assert!(lines.contains(&vec!["[*]", "[]", "[*]"]), "{list}");
}

#[test]
fn a_token_authenticates_its_service_account() {
    let cluster = Cluster::with("apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: robot}\n");
    let token = cluster.kubectl("create token robot --duration=1h").result();
    insta::assert_snapshot!(
        as_bearer(&cluster, &token, "auth whoami -o jsonpath={.status.userInfo.username},{.status.userInfo.groups}"),
        @r#"system:serviceaccount:default:robot,["system:serviceaccounts","system:serviceaccounts:default","system:authenticated"]"#
    );
    insta::assert_snapshot!(cluster.kubectl("create token nobody"), @r#"
    --- stderr
    error: failed to create token: serviceaccounts "nobody" not found
    --- exit status 1
    "#);
}

#[test]
fn an_unknown_token_is_unauthorized() {
    let cluster = Cluster::start();
    let failure = as_bearer(&cluster, "nonsense", "get namespaces").failure();
    assert!(failure.starts_with("error: You must be logged in to the server"), "{failure}");
}

/// A namespace with a user who may read pods.
const READER: [&str; 3] = [
    "create namespace shop",
    "create role reader --verb=get,list --resource=pods,pods/log -n shop",
    "create rolebinding readers --role=reader --user=jane --serviceaccount=shop:robot -n shop",
];

#[test]
fn can_i_follows_roles_and_bindings() {
    let cluster = Cluster::start();
    for line in READER {
        cluster.kubectl(line).result();
    }
    insta::assert_snapshot!(cluster.session("
        auth can-i list pods -n shop --as jane
        auth can-i get pods --subresource=log -n shop --as jane
        auth can-i delete pods -n shop --as jane
        auth can-i list pods --as jane
        auth can-i list pods -n shop --as system:serviceaccount:shop:robot
        auth can-i list pods -n shop --as system:serviceaccount:default:robot
        auth can-i get /healthz --as jane
        auth can-i get /metrics --as jane
        get pods -n shop --as jane
        get pods --as jane
        delete pod x -n shop --as jane
    "), @r#"
    $ kubectl auth can-i list pods -n shop --as jane
    yes
    $ kubectl auth can-i get pods --subresource=log -n shop --as jane
    yes
    $ kubectl auth can-i delete pods -n shop --as jane
    no
    --- exit status 1
    $ kubectl auth can-i list pods --as jane
    no
    --- exit status 1
    $ kubectl auth can-i list pods -n shop --as system:serviceaccount:shop:robot
    yes
    $ kubectl auth can-i list pods -n shop --as system:serviceaccount:default:robot
    no
    --- exit status 1
    $ kubectl auth can-i get /healthz --as jane
    yes
    $ kubectl auth can-i get /metrics --as jane
    no
    --- exit status 1
    $ kubectl get pods -n shop --as jane
    --- stderr
    No resources found in shop namespace.
    $ kubectl get pods --as jane
    --- stderr
    Error from server (Forbidden): pods is forbidden: User "jane" cannot list resource "pods" in API group "" in the namespace "default"
    --- exit status 1
    $ kubectl delete pod x -n shop --as jane
    --- stderr
    Error from server (Forbidden): pods "x" is forbidden: User "jane" cannot delete resource "pods" in API group "" in the namespace "shop"
    --- exit status 1
    "#);
}

#[test]
fn can_i_lists_the_rules_of_a_user() {
    let cluster = Cluster::start();
    for line in READER {
        cluster.kubectl(line).result();
    }
    insta::assert_snapshot!(cluster.kubectl("auth can-i --list -n shop --as jane"), @"
    Resources                                       Non-Resource URLs   Resource Names   Verbs
    selfsubjectreviews.authentication.k8s.io        []                  []               [create]
    selfsubjectaccessreviews.authorization.k8s.io   []                  []               [create]
    selfsubjectrulesreviews.authorization.k8s.io    []                  []               [create]
    pods/log                                        []                  []               [get list]
    pods                                            []                  []               [get list]
                                                    [/api/*]            []               [get]
                                                    [/api]              []               [get]
                                                    [/apis/*]           []               [get]
                                                    [/apis]             []               [get]
                                                    [/healthz]          []               [get]
                                                    [/healthz]          []               [get]
                                                    [/livez]            []               [get]
                                                    [/livez]            []               [get]
                                                    [/openapi/*]        []               [get]
                                                    [/openapi]          []               [get]
                                                    [/readyz]           []               [get]
                                                    [/readyz]           []               [get]
                                                    [/version/]         []               [get]
                                                    [/version/]         []               [get]
                                                    [/version]          []               [get]
                                                    [/version]          []               [get]
    ");
}

#[test]
fn privilege_escalation_is_forbidden() {
    let cluster = Cluster::start();
    cluster.kubectl("create clusterrolebinding jane --clusterrole=edit --user=jane").result();
    cluster
        .kubectl("create clusterrole delegate --verb=create,get --resource=roles,rolebindings,clusterroles")
        .result();
    cluster.kubectl("create clusterrolebinding delegate --clusterrole=delegate --user=jane").result();
    insta::assert_snapshot!(cluster.session("
        create role some --verb=get --resource=pods --as jane
        create role more --verb=get,list --resource=roles --as jane
        create rolebinding all --clusterrole=cluster-admin --user=jane --as jane
        create rolebinding none --clusterrole=none --user=jane --as jane
        create clusterrole sum --aggregation-rule=a=b --as jane
    "), @r#"
    $ kubectl create role some --verb=get --resource=pods --as jane
    role.rbac.authorization.k8s.io/some created
    $ kubectl create role more --verb=get,list --resource=roles --as jane
    --- stderr
    Error from server (Forbidden): roles.rbac.authorization.k8s.io "more" is forbidden: user "jane" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held:
    {APIGroups:["rbac.authorization.k8s.io"], Resources:["roles"], Verbs:["list"]}
    --- exit status 1
    $ kubectl create rolebinding all --clusterrole=cluster-admin --user=jane --as jane
    --- stderr
    error: failed to create rolebinding: rolebindings.rbac.authorization.k8s.io "all" is forbidden: user "jane" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held:
    {APIGroups:["*"], Resources:["*"], Verbs:["*"]}
    {NonResourceURLs:["*"], Verbs:["*"]}
    --- exit status 1
    $ kubectl create rolebinding none --clusterrole=none --user=jane --as jane
    --- stderr
    error: failed to create rolebinding: rolebindings.rbac.authorization.k8s.io "none" not found
    --- exit status 1
    $ kubectl create clusterrole sum --aggregation-rule=a=b --as jane
    --- stderr
    Error from server (Forbidden): clusterroles.rbac.authorization.k8s.io "sum" is forbidden: must have cluster-admin privileges to use the aggregationRule
    --- exit status 1
    "#);
}

#[test]
fn impersonation_requires_permission() {
    let cluster = Cluster::with("apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: robot}\n");
    let token = cluster.kubectl("create token robot").result();
    let as_bob = "auth whoami -o jsonpath={.status.userInfo.username} --as bob";
    insta::assert_snapshot!(as_bearer(&cluster, &token, "get --raw /version --as bob"), @r#"
    --- stderr
    Error from server (Forbidden): forbidden: User "system:serviceaccount:default:robot" cannot impersonate-on:user-info:get path "/version"
    --- exit status 1
    "#);
    cluster
        .kubectl("create clusterrole imp --verb=impersonate --resource=users --resource-name=bob")
        .result();
    cluster
        .kubectl("create clusterrolebinding imp --clusterrole=imp --serviceaccount=default:robot")
        .result();
    insta::assert_snapshot!(as_bearer(&cluster, &token, as_bob), @"bob");
    insta::assert_snapshot!(as_bearer(&cluster, &token, "get --raw /version --as max"), @r#"
    --- stderr
    Error from server (Forbidden): users "max" is forbidden: User "system:serviceaccount:default:robot" cannot impersonate resource "users" in API group "" at the cluster scope
    --- exit status 1
    "#);
}

#[test]
fn auth_reconcile_updates_roles_and_bindings() {
    let cluster = Cluster::start();
    for line in READER {
        cluster.kubectl(line).result();
    }
    let file = "
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader, namespace: shop}
rules:
- {apiGroups: [''], resources: [pods], verbs: [get, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: readers, namespace: shop}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: max}
";
    insta::assert_snapshot!(cluster.feed("auth reconcile -f -", file), @r"
    role.rbac.authorization.k8s.io/reader reconciled
    rolebinding.rbac.authorization.k8s.io/readers reconciled
    --- stderr
    	reconciliation required update
    	missing rules added:
    		{Verbs:[watch] APIGroups:[] Resources:[pods] ResourceNames:[] NonResourceURLs:[]}
    	reconciliation required update
    	missing subjects added:
    		{Kind:User APIGroup:rbac.authorization.k8s.io Name:max Namespace:}
    ");
    insta::assert_snapshot!(cluster.session("
        auth can-i watch pods -n shop --as max
        auth can-i list pods -n shop --as jane
    "), @"
    $ kubectl auth can-i watch pods -n shop --as max
    yes
    $ kubectl auth can-i list pods -n shop --as jane
    yes
    ");
    insta::assert_snapshot!(cluster.feed("auth reconcile -f - --remove-extra-permissions --remove-extra-subjects", file), @r"
    role.rbac.authorization.k8s.io/reader reconciled
    rolebinding.rbac.authorization.k8s.io/readers reconciled
    --- stderr
    	reconciliation required update
    	extra rules removed:
    		{Verbs:[list] APIGroups:[] Resources:[pods] ResourceNames:[] NonResourceURLs:[]}
    		{Verbs:[get] APIGroups:[] Resources:[pods/log] ResourceNames:[] NonResourceURLs:[]}
    		{Verbs:[list] APIGroups:[] Resources:[pods/log] ResourceNames:[] NonResourceURLs:[]}
    	reconciliation required update
    	extra subjects removed:
    		{Kind:User APIGroup:rbac.authorization.k8s.io Name:jane Namespace:}
    		{Kind:ServiceAccount APIGroup: Name:robot Namespace:shop}
    ");
    insta::assert_snapshot!(cluster.session("
        auth can-i watch pods -n shop --as max
        auth can-i list pods -n shop --as max
        auth can-i get pods -n shop --as jane
    "), @"
    $ kubectl auth can-i watch pods -n shop --as max
    yes
    $ kubectl auth can-i list pods -n shop --as max
    no
    --- exit status 1
    $ kubectl auth can-i get pods -n shop --as jane
    no
    --- exit status 1
    ");
}

#[test]
fn an_aggregated_role_has_the_selected_rules() {
    let cluster = Cluster::start();
    cluster
        .kubectl(
            "create clusterrole monitoring --aggregation-rule=rbac.example.com/aggregate-to-monitoring=true",
        )
        .result();
    cluster.create(
        "
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: endpoints, labels: {rbac.example.com/aggregate-to-monitoring: 'true'}}
rules:
- {apiGroups: [''], resources: [services, endpoints], verbs: [get]}
",
    );
    insta::assert_snapshot!(cluster.kubectl("describe clusterrole monitoring"), @"
    Name:         monitoring
    Labels:       <none>
    Annotations:  <none>
    PolicyRule:
      Resources  Non-Resource URLs  Resource Names  Verbs
      ---------  -----------------  --------------  -----
      endpoints  []                 []              [get]
      services   []                 []              [get]
    ");
}

/// Runs kubectl with a token instead of the admin certificate.
fn as_bearer(cluster: &Cluster, token: &str, line: &str) -> Answer {
    let connect = format!("--kubeconfig /dev/null --server {} --insecure-skip-tls-verify", cluster.url);
    cluster.kubectl(&format!("{connect} --token {} {line}", token.trim_end()))
}
