use kubewright_macros::rbac;

#[rbac]
struct Nothing;

#[rbac(groups = "apps", resources = "deployments")]
struct Verbs;

#[rbac(resources = "pods", verbs = "get")]
struct Groups;

#[rbac(groups = "apps", verbs = "get")]
struct Resources;

#[rbac(verbs = "get")]
struct Both;

#[rbac(groups = "apps", resources = "", verbs = [])]
struct Empty;

fn main() {}
