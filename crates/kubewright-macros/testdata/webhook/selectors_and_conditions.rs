use kubewright_macros::webhook;

#[webhook(
    name = "vguestbook.example.com",
    mutating = false,
    path = "/validate",
    groups = "example.com",
    versions = "v1",
    resources = "guestbooks",
    verbs = "create",
    namespace_selector = r#"{"matchLabels": {"a": "b"}"#,
    object_selector = { matchLables: { "a": "b" } },
    match_conditions = [("no nodes", "true"), ("a", ""), ("a", "true"), "request.name != ''"]
)]
struct Form;

#[webhook(
    name = "vguestbook.example.com",
    mutating = false,
    path = "/validate",
    groups = "example.com",
    versions = "v1",
    resources = "guestbooks",
    verbs = "create",
    namespace_selector = {
        matchLabels: { "a b": "c d", e: 1 },
        matchExpressions: [
            { key: "a", operator: "Equals", values: ["b"] },
            { key: "a", operator: "Exist" },
            { key: "a", operator: "In" },
            { key: "a", operator: "Exists", values: ["b"] },
            { operator: "Exists" },
            { key: "a" },
        ],
    },
    object_selector = ["a"],
    match_conditions = "true"
)]
struct Contents;

fn main() {}
