//! Lists dependencies; has no code.
