//! The fuzz targets that libFuzzer calls. They are part of the API server's tests, which also run them.

#[path = "../../crates/kubewright-apiserver/tests/it/fuzz/choices.rs"]
mod choices;
#[path = "../../crates/kubewright-apiserver/tests/it/fuzz/objects.rs"]
mod objects;
#[path = "../../crates/kubewright-apiserver/tests/it/fuzz/reviews.rs"]
pub mod reviews;
#[path = "../../crates/kubewright-apiserver/tests/it/fuzz/targets.rs"]
pub mod targets;
