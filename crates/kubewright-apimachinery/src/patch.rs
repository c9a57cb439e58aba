//! Patches: how the server makes a new object of an old one and a client's wishes.
//!
//! Each kind is decoded and applied as the library that kube-apiserver uses does it, and its errors are that
//! library's. Decoding has two steps, because the server has: the check that `fieldValidation` asks for,
//! which finds unknown and repeated fields and is stricter about types, and the decoding proper. The server
//! runs the first only for `Warn`, which is the default, and `Strict`.
//!
//! A patch knows nothing of the kind of its object; the result is decoded and validated elsewhere.

pub mod json_patch;
pub mod merge_patch;
pub mod strategic;

pub use json_patch::{JsonPatch, JsonPatchError, apply_json_patch, check_json_patch};
pub use merge_patch::{
    MergePatchError, apply_merge_patch, check_merge_patch, create_merge_patch, decode_merge_patch,
};
