//! The targets that libFuzzer calls. They live beside the tests, which run them with seeds of their own.

#[path = "../../crates/kubewright-apiserver/tests/it/fuzz/choices.rs"]
mod choices;
#[path = "../../crates/kubewright-apiserver/tests/it/fuzz/objects.rs"]
mod objects;
#[path = "../../crates/kubewright-apiserver/tests/it/fuzz/reviews.rs"]
pub mod reviews;
#[path = "../../crates/kubewright-apiserver/tests/it/fuzz/targets.rs"]
pub mod targets;
