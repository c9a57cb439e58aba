//! CustomResourceDefinitions: from Rust types, and several versions in one.
//!
//! [`of`] is the one way from a type to its definition; tests, the development loop and manifests all use it. What
//! kube's derive knows of the kind (names, columns, subresources) is taken from there. The schema is made here, since
//! kube's goes through types that lose keywords, and has every `Option` nullable.
//!
//! # Codes
//!
//! | code | what is wrong |
//! |---|---|
//! | KW101 | a marker stands at a type that it is not for |
//! | KW102 | a marker names a field that is not there |
//! | KW103 | a keyword that definitions do not know |
//! | KW104 | a `None` is written as null, and the schema does not take null |
//! | KW105 | an enum that no definition can hold |
//! | KW106 | a type that holds itself |
//! | KW107 | a type without values, or with null alone |
//! | KW108 | something that a definition cannot check, or cannot say |
//! | KW109 | kube's derive panics |
//! | KW110 | schemars drops a validator: found by `dropped_validators`, with the feature `sources` |
//! | KW120 | not exactly one version is stored |
//! | KW121 | a version is declared twice |
//! | KW122 | versions do not agree in what they share |

mod describe;
mod merge;

#[cfg(feature = "types")]
mod carry;
#[cfg(feature = "types")]
mod inline;
#[cfg(feature = "types")]
mod nulls;
#[cfg(feature = "sources")]
mod sources;
#[cfg(feature = "types")]
mod structural;
#[cfg(feature = "types")]
mod typed;
#[cfg(feature = "types")]
mod upstream;

pub use describe::limit_descriptions;
pub use merge::{Definition, Merged, file_name, merge, merge_all};
#[cfg(feature = "sources")]
pub use sources::dropped_validators;
#[cfg(feature = "types")]
pub use typed::{Described, declared, kind, of, with};
#[cfg(feature = "types")]
pub use upstream::Options;
