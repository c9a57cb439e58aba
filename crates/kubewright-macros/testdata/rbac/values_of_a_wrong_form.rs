use kubewright_macros::rbac;

#[rbac(groups = "apps;batch", resources = "deployments jobs", verbs = ["get, list"])]
struct Separators;

#[rbac(groups = "apps", resources = "deployments,", verbs = "get, get")]
struct EmptyAndTwice;

#[rbac(groups = apps, resources = 3, verbs = ["get", 4])]
struct NoTexts;

#[rbac(urls = "metrics, /a/*/b", verbs = "get")]
struct Paths;

#[rbac(groups = "", resources = "pods", verbs = "get", namespace = "Kube_System", role_name = "a/b")]
struct Names;

#[rbac(groups: "apps")]
struct NoEquals;

#[rbac(groups)]
struct NoValue;

fn main() {}
