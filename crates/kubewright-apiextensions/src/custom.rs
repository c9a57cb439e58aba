//! Rules for custom resources.
//!
//! [`CrdValidation::compile`] compiles a CRD. A write runs, in this order: [`decode`] (or [`complete`] for the
//! result of a patch), [`check_version`], [`prepare_create`], [`prepare_update`] or
//! [`prepare_status_update`], then [`validate_create`], [`validate_replace`] or [`validate_status`], then the
//! CEL rules unless [`blocks_rules`]; and [`warnings`]. Every object read from storage, including the result
//! of a write, passes through [`read`].
//!
//! CRDs themselves are validated in [`crd`](crate::crd). CEL rules are evaluated by `kubewright-cel`.

mod crd_validation;
mod decode;
mod defaults;
mod lists;
mod metadata;
mod print;
mod prune;
mod scale;
mod strategy;
mod validate;

pub use crd_validation::{CrdValidation, Version};
pub use decode::{
    DecodeError, ReadError, ShapeError, check_version, coerce, complete, convert, decode, decode_parsed,
    read, restore,
};
pub use defaults::apply_defaults;
pub use lists::validate_lists;
pub use metadata::{Malformed, coerce_metadata, validate_metadata};
pub use prune::{prune, prune_nulls, prune_paths};
pub use scale::ScalePaths;
pub use strategy::{
    blocks_rules, prepare_create, prepare_status_update, prepare_update, validate_create, validate_replace,
    validate_status, warnings,
};
pub(crate) use validate::to_int;
pub use validate::{validate, validate_at, validate_update, validate_update_at};
