//! The binary `kubewright`.
fn main() {}
