//! Apply configurations of custom resources, against the embedded API server.

use std::collections::BTreeMap;

use kubewright::prelude::*;
use kubewright::serde::{Deserialize, Serialize};
use kubewright::serde_json::{self, json};
use kubewright::{Client, kube, schemars};
use kubewright_apiserver::{ApiServer, Options};

#[derive(CustomResource, KubeSchema, ApplyConfiguration, Serialize, Deserialize, Clone, Debug)]
#[kube(group = "example.com", version = "v1", kind = "Library", namespaced, status = "LibraryStatus")]
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
struct LibrarySpec {
    /// The maximum number of books.
    most_books: u16,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    street: Option<String>,
    #[serde(rename = "kind")]
    r#type: String,
    #[serde(default)]
    opening_days: Vec<String>,
    #[serde(default)]
    #[apply(nested)]
    shelves: BTreeMap<String, Shelf>,
    #[serde(default)]
    #[apply(nested)]
    #[x_kube(merge_strategy = kubewright::kube::core::ListMerge::Map(vec!["name".into()]))]
    readers: Vec<Reader>,
    #[apply(nested)]
    hall: Option<Box<Shelf>>,
    #[serde(flatten)]
    #[apply(nested)]
    address: Address,
    #[serde(with = "as_text", default)]
    #[schemars(with = "String")]
    fee: u32,
    #[serde(skip)]
    _seen: bool,
}

#[derive(ApplyConfiguration, Serialize, Deserialize, schemars::JsonSchema, Clone, Debug, Default)]
#[schemars(crate = "kubewright::schemars")]
#[serde(crate = "kubewright::serde")]
struct Shelf {
    height: i32,
    books: Option<Vec<i64>>,
}

#[derive(ApplyConfiguration, Serialize, Deserialize, schemars::JsonSchema, Clone, Debug, Default)]
#[schemars(crate = "kubewright::schemars")]
#[serde(crate = "kubewright::serde")]
struct Reader {
    name: String,
    #[serde(default)]
    age: u8,
}

#[derive(ApplyConfiguration, Serialize, Deserialize, schemars::JsonSchema, Clone, Debug, Default)]
#[schemars(crate = "kubewright::schemars")]
#[serde(crate = "kubewright::serde")]
struct Address {
    town: String,
    zip: String,
}

#[derive(ApplyConfiguration, Serialize, Deserialize, schemars::JsonSchema, Clone, Debug, Default)]
#[schemars(crate = "kubewright::schemars")]
#[serde(crate = "kubewright::serde", rename_all = "camelCase")]
struct LibraryStatus {
    lent_out: i32,
}

/// A number that is serialized as a string.
mod as_text {
    use kubewright::serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives references")]
    pub(super) fn serialize<S: Serializer>(value: &u32, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&value.to_string())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

fn whole() -> LibrarySpecApply {
    LibrarySpecApply::default()
        .most_books(500)
        .street("Main St")
        .r#type("public")
        .opening_days(["Mon", "Tue"])
        .shelves([("a", ShelfApply::default().height(2).books([1, 2]))])
        .readers([ReaderApply::default().name("Ada").age(36)])
        .hall(ShelfApply::default().height(9))
        .address(AddressApply::default().town("Ulm"))
        .fee(3_u32)
}

#[test]
fn fields_have_their_serialized_names_and_unset_ones_are_omitted() {
    let expected = json!({
        "mostBooks": 500,
        "street": "Main St",
        "kind": "public",
        "openingDays": ["Mon", "Tue"],
        "shelves": {"a": {"height": 2, "books": [1, 2]}},
        "readers": [{"name": "Ada", "age": 36}],
        "hall": {"height": 9},
        "town": "Ulm",
        "fee": "3",
    });
    assert_eq!(serde_json::to_value(whole()).unwrap(), expected);
    assert_eq!(serde_json::from_value::<LibrarySpecApply>(expected).unwrap(), whole());
    assert_eq!(serde_json::to_value(LibrarySpecApply::default()).unwrap(), json!({}));
    assert_eq!(serde_json::from_value::<LibrarySpecApply>(json!({})).unwrap(), LibrarySpecApply::default());
}

#[tokio::test]
async fn two_field_managers_share_an_object_and_each_extracts_its_fields() {
    let kube = kube::Client::new(ApiServer::new(Options::default()), "default");
    let client = Client::new(kube);
    client.create(&Library::crd()).await.unwrap();
    let (a, b) = (client.field_owner("a"), client.field_owner("b"));
    let named = || LibraryApply::new("city").namespace("default");
    let of_a = named().spec(whole().address(AddressApply::default().town("Ulm").zip("89073")));
    // Another field manager has an item of a keyed list and an entry of a map.
    let of_b = named().label("by", "b").spec(
        LibrarySpecApply::default()
            .readers([ReaderApply::default().name("Bob")])
            .shelves([("b", ShelfApply::default().height(1))]),
    );
    a.apply(&of_a).await.unwrap();
    let both = b.apply(&of_b).await.unwrap();
    let there: Library = both.complete().unwrap();
    assert_eq!((there.spec.readers.len(), there.spec.shelves.len(), there.spec.fee), (2, 2, 3));
    assert_eq!(LibraryApply::extract(&there, "a").unwrap(), of_a);
    assert_eq!(LibraryApply::extract(&there, "b").unwrap(), of_b);
    let again = a.apply(&LibraryApply::extract(&there, "a").unwrap()).await.unwrap();
    assert_eq!(again.metadata.resource_version, both.metadata.resource_version);

    let lent = named().status(LibraryStatusApply::default().lent_out(4));
    let there = a.status().apply(&lent).await.unwrap().complete().unwrap();
    assert_eq!(there.status.as_ref().map(|status| status.lent_out), Some(4));
    assert_eq!(LibraryApply::extract_status(&there, "a").unwrap(), lent);
}
