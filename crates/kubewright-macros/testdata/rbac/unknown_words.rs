use kubewright_macros::rbac;

#[rbac(groups = "apps", resources = "deployments", verbs = "get, lsit, watch")]
struct Typo;

#[rbac(groups = "apps", resources = "deployments", verbs = ["get", "Update"])]
struct UpperCase;

#[rbac(groups = "apps", resources = "deployments", verbs = "publish")]
struct NothingNear;

#[rbac(group = "apps", resourceNames = "web", resources = "deployments", colour = "red", verbs = "get")]
struct Keys;

#[rbac(urls = "/metrics", verbs = "list")]
struct VerbOfUrls;

fn main() {}
