//! Takes the place of a dependency whose code is not used.
