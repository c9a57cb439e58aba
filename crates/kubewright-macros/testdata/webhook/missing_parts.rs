use kubewright_macros::webhook;

#[webhook]
struct Nothing;

#[webhook(
    name = "mguestbook.example.com",
    path = "/mutate",
    groups = "example.com",
    versions = "v1",
    resources = "guestbooks",
    verbs = "create"
)]
struct Mutating;

fn main() {}
