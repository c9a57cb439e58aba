//! Compile errors of the macros. The tests of the crate `kubewright` and the operators in `examples/` cover
//! valid input.

use trybuild::TestCases;

#[test]
fn main_errors_point_at_the_wrong_token() {
    TestCases::new().compile_fail("testdata/main/*.rs");
}

#[test]
fn rbac_errors_point_at_the_wrong_token() {
    TestCases::new().compile_fail("testdata/rbac/*.rs");
}

#[test]
fn webhook_errors_point_at_the_wrong_token() {
    TestCases::new().compile_fail("testdata/webhook/*.rs");
}

#[test]
fn apply_configuration_errors_point_at_the_wrong_token() {
    TestCases::new().compile_fail("testdata/apply/*.rs");
}

#[test]
fn object_errors_point_at_the_wrong_key_or_value() {
    TestCases::new().compile_fail("testdata/object/*.rs");
}
