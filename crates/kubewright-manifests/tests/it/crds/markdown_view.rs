//! MarkdownView of the kubebuilder tutorial.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use kubewright_manifests::{crd, declare, schema};
use serde::{Deserialize, Serialize};

use super::{same, text};

/// MarkdownViewSpec defines the desired state of MarkdownView.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(
    group = "view.zoetrope.github.io",
    version = "v1",
    kind = "MarkdownView",
    namespaced,
    status = "MarkdownViewStatus",
    doc = "MarkdownView is the Schema for the markdownviews API",
    printcolumn(name = "REPLICAS", type_ = "integer", json_path = ".spec.replicas"),
    printcolumn(
        name = "STATUS",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Available\")].status"
    )
)]
#[serde(rename_all = "camelCase")]
pub(super) struct MarkdownViewSpec {
    /// Markdowns contain the markdown files you want to display.
    /// The key indicates the file name and must not overlap with the keys.
    #[schemars(transform = schema::min_properties(1))]
    markdowns: BTreeMap<String, String>,
    /// Replicas is the number of viewers.
    #[serde(default = "one")]
    replicas: i32,
    /// ViewerImage is the image name of the viewer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    viewer_image: Option<String>,
}

fn one() -> i32 {
    1
}

/// MarkdownViewStatus defines the observed state of MarkdownView.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default)]
pub(super) struct MarkdownViewStatus {
    /// Conditions represent the current state of the MarkdownView.
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    conditions: Vec<Condition>,
}

kubewright_manifests::crds!(MarkdownView);

#[test]
fn markdown_view_equals_the_output_of_controller_gen() {
    same("markdown_view", &text(&crd::of::<MarkdownView>()));
}

#[test]
fn a_declared_kind_is_found_with_its_location() {
    let declared = declare::all();
    let [declare::Declared::Kind(kind)] = declared.as_slice() else { panic!("{declared:?}") };
    assert!(kind.item.path.ends_with("crds::markdown_view::MarkdownView"), "{:?}", kind.item);
    assert!(kind.item.file.ends_with("tests/it/crds/markdown_view.rs"), "{:?}", kind.item);
    assert_eq!(kind.definition, crd::of::<MarkdownView>().definition);
    let merged = crd::merge(vec![kind.clone()]);
    assert_eq!(merged.findings, []);
    assert_eq!(merged.crds[0].file, "view.zoetrope.github.io_markdownviews.yaml");
    assert_eq!(merged.crds[0].crd, kind.definition);
}
