use kubewright_macros::rbac;

#[rbac(groups = "apps", resources = "deployments", urls = "/metrics", verbs = "get")]
struct Both;

#[rbac(urls = "/metrics", groups = "apps", verbs = "get")]
struct GroupsOfUrls;

#[rbac(urls = "/metrics", namespace = "default", verbs = "get")]
struct NamespaceOfUrls;

#[rbac(groups = "apps", groups = "batch", resources = "deployments", verbs = "get")]
struct Twice;

fn main() {}
