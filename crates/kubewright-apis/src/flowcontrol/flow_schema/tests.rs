//! Tests of FlowSchema.

use serde_json::json;

use crate::table::sort_rows;
use kubewright_apimachinery::gvk::Gvk;

#[test]
fn flow_schemas_are_sorted_by_matching_precedence() {
    let flow = |name: &str, precedence: i64| json!({"metadata": {"name": name}, "spec": {"matchingPrecedence": precedence}});
    let (a, b, c) = (flow("a", 9), flow("b", 1), flow("c", 9));
    let mut rows = [&c, &a, &b];
    sort_rows(Gvk { group: "flowcontrol.apiserver.k8s.io", version: "v1", kind: "FlowSchema" }, &mut rows);
    assert_eq!(rows, [&b, &a, &c]);
    sort_rows(Gvk { group: "", version: "v1", kind: "Pod" }, &mut rows);
    assert_eq!(rows, [&b, &a, &c]);
}
