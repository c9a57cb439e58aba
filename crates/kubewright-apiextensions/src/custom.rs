//! Custom resources: the rules for instances of kinds that users define.
//!
//! [`Definition::compile`] turns a CustomResourceDefinition into what the rules walk along. On a write, in this
//! order: [`decode`] (or, for what a patch made, [`complete`]), [`check_version`], [`prepare_create`],
//! [`prepare_update`] or [`prepare_status_update`], then [`validate_create`], [`validate_replace`] or
//! [`validate_status`], then the rules in CEL unless [`blocks_rules`]; and [`warnings`]. Everything that comes
//! out of storage, the answer to a write too, goes through [`read`].
//!
//! Invariant: a [`Schema`] and the objects of its kind are walked together, and nothing here looks at any other
//! kind. Whether a definition itself is right is decided elsewhere, and so are rules in CEL.

mod decode;
mod defaults;
mod definition;
mod format;
mod lists;
mod metadata;
mod pattern;
mod print;
mod prune;
mod scale;
mod schema;
mod strategy;
mod validate;

pub use decode::{
    DecodeError, ReadError, ShapeError, check_version, coerce, complete, convert, decode, decode_parsed,
    read, restore,
};
pub use defaults::apply_defaults;
pub use definition::{Definition, Version};
pub use format::{Format, FormatKind};
pub use lists::validate_lists;
pub use metadata::{Malformed, coerce_metadata, validate_metadata};
pub use pattern::{Pattern, PatternError, compile as compile_pattern};
pub use prune::{prune, prune_nulls, prune_paths};
pub use scale::ScalePaths;
pub use schema::{
    Additional, Contains, Junctors, ListType, NumberBounds, Schema, SchemaError, SizeBounds, StringBounds,
    Type, Types,
};
pub use strategy::{
    blocks_rules, prepare_create, prepare_status_update, prepare_update, validate_create, validate_replace,
    validate_status, warnings,
};
pub use validate::{validate, validate_at, validate_update, validate_update_at};
