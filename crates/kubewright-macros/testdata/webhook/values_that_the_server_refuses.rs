use kubewright_macros::webhook;

#[webhook(
    name = "guestbook.com",
    mutating = false,
    path = "validate",
    groups = "example.com/v1",
    versions = "example.com/v1, V2",
    resources = "Guestbook",
    verbs = "create, *",
    timeout_seconds = 31,
    reinvocation_policy = never,
    service_name = "1st",
    service_port = 0,
    configuration = "My Hooks"
)]
struct Values;

#[webhook(
    name = "Guestbook",
    mutating = "yes",
    path = "/Validate/it",
    url = "http://example.com",
    groups = "example.com",
    versions = "v1",
    resources = "guestbooks",
    verbs = "create",
    timeout_seconds = "5"
)]
struct BothPlaces;

#[webhook(
    name = "vguestbook.example.com",
    mutating = true,
    url = "https://me@example.com/?a=b",
    service_name = "hooks",
    groups = "example.com",
    versions = "v1",
    resources = "guestbooks",
    verbs = "create"
)]
struct Url;

fn main() {}
