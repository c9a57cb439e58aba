//! What the attributes refuse, in the compiler's own words. What they accept, the operators in `examples/` show.

#[test]
fn a_main_function_of_another_shape_is_refused_at_the_word_that_is_wrong() {
    trybuild::TestCases::new().compile_fail("testdata/main/*.rs");
}
