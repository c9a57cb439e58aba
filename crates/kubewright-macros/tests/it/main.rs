//! What the attributes refuse, in the compiler's own words. What they accept, the tests of the crate `kubewright` and
//! the operators in `examples/` show.

use trybuild::TestCases;

#[test]
fn a_main_function_of_another_shape_is_refused_at_the_word_that_is_wrong() {
    TestCases::new().compile_fail("testdata/main/*.rs");
}

#[test]
fn a_rule_that_grants_nothing_is_refused_at_the_word_that_is_wrong() {
    TestCases::new().compile_fail("testdata/rbac/*.rs");
}

#[test]
fn a_webhook_that_a_server_would_refuse_is_refused_at_the_word_that_is_wrong() {
    TestCases::new().compile_fail("testdata/webhook/*.rs");
}

#[test]
fn a_struct_that_cannot_be_applied_in_part_is_refused_at_the_word_that_is_wrong() {
    TestCases::new().compile_fail("testdata/apply/*.rs");
}

#[test]
fn an_object_that_does_not_fit_its_kind_is_refused_at_the_key_or_value_that_is_wrong() {
    TestCases::new().compile_fail("testdata/object/*.rs");
}
