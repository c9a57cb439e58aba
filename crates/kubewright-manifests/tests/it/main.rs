//! Tests of generated CRDs.

#[cfg(feature = "types")]
mod crds;
