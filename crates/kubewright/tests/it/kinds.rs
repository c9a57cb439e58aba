//! A custom resource with only the facade as a dependency.
//!
//! The derives of kube, serde and schemars refer to crates by name. These attributes redirect them to the facade.

use kubewright::serde::{Deserialize, Serialize};
use kubewright::{CustomResource, CustomResourceExt as _, Key, Kind, KubeSchema, Scope, schemars};

#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(group = "example.com", version = "v1", kind = "Guestbook", namespaced)]
#[kube(crates(
    kube_core = "kubewright::kube::core",
    k8s_openapi = "kubewright::k8s_openapi",
    schemars = "kubewright::schemars",
    serde = "kubewright::serde",
    serde_json = "kubewright::serde_json"
))]
#[x_kube(crates(
    kube_core = "kubewright::kube::core",
    schemars = "kubewright::schemars",
    serde = "kubewright::serde",
    serde_json = "kubewright::serde_json"
))]
#[schemars(crate = "kubewright::schemars")]
#[serde(crate = "kubewright::serde", rename_all = "camelCase")]
struct GuestbookSpec {
    #[x_kube(validation = "self > 0")]
    page_count: i32,
}

#[test]
fn a_kind_can_be_derived_with_the_crates_of_the_facade() {
    let kind = Kind::of::<Guestbook>();
    assert_eq!((kind.plural(), kind.scope()), ("guestbooks", Scope::Namespaced));
    let book = Guestbook::new("visitors", GuestbookSpec { page_count: 3 });
    assert_eq!(Key::of(&book).as_str(), "visitors");
    let crd = kubewright::serde_json::to_value(Guestbook::crd()).unwrap();
    let spec = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    assert_eq!(spec["properties"]["pageCount"]["x-kubernetes-validations"][0]["rule"], "self > 0");
}
