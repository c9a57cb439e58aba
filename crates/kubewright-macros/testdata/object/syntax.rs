use kubewright_macros::object;

fn main() {
    object! {};
    object! { ConfigMap { metadata: { name: "a" } } extra };
    object! { ConfigMap { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "a", name: "b" } } };
    object! { ConfigMap { metadata: { name?: "a" }, ("data"): {}, data: { a: "b", .. } } };
    object! { ConfigMap { .., metadata: { name: "a" } } };
    object! { ConfigMap { metadata { name: "a" } } };
    object! { Guestbook { metadata: { name: "a" }, spec: { pages: 1, .. } } };
}
