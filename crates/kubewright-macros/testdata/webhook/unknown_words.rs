use kubewright_macros::webhook;

#[webhook(
    name = "vguestbook.example.com",
    mutating = false,
    path = "/validate",
    groups = "example.com",
    versions = "v1",
    resources = "guestbooks",
    verbs = "create, updaet, patch, get, archive",
    failurePolicy = fail,
    timeout = 5,
    patch = "{}",
    webhook_versions = "v1"
)]
struct Keys;

#[webhook(
    name = "vguestbook.example.com",
    mutating = false,
    path = "/validate",
    groups = "example.com",
    versions = "v1",
    resources = "guestbooks",
    verbs = "CREATE",
    failure_policy = "Fial",
    match_policy = similar,
    side_effects = "some",
    admission_review_versions = "v2"
)]
struct Choices;

fn main() {}
