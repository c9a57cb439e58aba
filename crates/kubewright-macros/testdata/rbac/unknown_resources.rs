use kubewright_macros::rbac;

#[rbac(groups = "apps", resources = "deployment", verbs = "get")]
struct Singular;

#[rbac(groups = "apps", resources = "Deployment/Status", verbs = "get")]
struct UpperCase;

#[rbac(groups = "core", resources = ["svc", "pods/logs", "secertss"], verbs = "get")]
struct ShortAndMisspelt;

#[rbac(groups = "", resources = "deployments", verbs = "get")]
struct OtherGroup;

#[rbac(groups = "app, guestbook", resources = "deployments", verbs = "get")]
struct Group;

#[rbac(groups = "apps/v1, networking", resources = "ingresses", verbs = "get")]
struct Groups;

#[rbac(groups = "example.com", resources = "/status", verbs = "get")]
struct NoResource;

fn main() {}
