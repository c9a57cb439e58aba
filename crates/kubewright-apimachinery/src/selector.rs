//! Selectors: which objects a list or watch wants, by their labels and by some of their fields.
//!
//! A selector is a list of requirements that all must hold; an empty one selects everything. The texts of
//! errors are upstream's, because the server answers a bad query with them.
//!
//! Which fields a resource can be selected by is not decided here.

mod field;
mod label;
mod label_parser;

pub use field::{FieldRequirement, FieldSelector, FieldSelectorError, escape_value};
pub use label::{LabelSelector, LabelSelectorError, Labels, Operator, Requirement};
