//! Patches: JSON patch, JSON merge patch and strategic merge patch.
//!
//! Each type behaves like the library that kube-apiserver uses, including error messages. As in the server,
//! decoding has two steps: the `fieldValidation` check, which finds unknown and duplicate fields and is
//! stricter about types, and the decoding itself. The server runs the check only for `Warn` (the default) and
//! `Strict`.
//!
//! The result is decoded and validated elsewhere.

pub mod json_patch;
pub mod merge_patch;
pub mod strategic;

pub use json_patch::{JsonPatch, JsonPatchError, apply_json_patch, check_json_patch};
pub use merge_patch::{
    MergePatchError, apply_merge_patch, check_merge_patch, create_merge_patch, decode_merge_patch,
};
