//! An empty replacement for a dependency whose code is not used.
