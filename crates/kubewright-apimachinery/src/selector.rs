//! Label and field selectors.
//!
//! A selector is a conjunction of requirements; an empty one selects everything. The error texts are
//! upstream's, because the server returns them for invalid queries.
//!
//! The selectable fields of a resource are defined elsewhere.

mod field;
mod label;
mod label_parser;

pub use field::{FieldRequirement, FieldSelector, FieldSelectorError, escape_value};
pub use label::{LabelSelector, LabelSelectorError, Labels, Operator, Requirement};
