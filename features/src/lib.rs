//! Has no code. Cargo.toml explains the package.
