//! Tests of Scale.

use serde_json::json;

use crate::table::scale_column_definitions;
use crate::testing::row;
use kubewright_apimachinery::object::Fields as _;

#[test]
fn a_scale_has_its_own_columns() {
    let parts = json!({"spec": {"replicas": 8}, "status": {"replicas": 4}});
    assert_eq!(row("autoscaling/v1", "Scale", parts), json!(["o", 8, 4, "60m"]));
    let columns = scale_column_definitions();
    let names: Vec<&str> = columns.iter().map(|column| column.str_at("name")).collect();
    assert_eq!(names, ["Name", "Desired", "Available", "Age"]);
    assert!(columns.iter().all(|column| column.str_at("format").is_empty()));
}
