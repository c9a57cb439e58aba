//! Definitions of kinds as people write them.

#[cfg(feature = "types")]
mod crds;
