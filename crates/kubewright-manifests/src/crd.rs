//! Generates CustomResourceDefinitions from Rust types and merges versions of a kind.
//!
//! Tests, `kubewright dev` and `kubewright manifests` all use [`of`] to generate the CRD of a type. Names,
//! printer columns and subresources come from kube's derive. The schema is generated here, because kube's
//! schema types lose keywords and make every `Option` nullable.
//!
//! # Codes
//!
//! | code | problem |
//! |---|---|
//! | KW101 | a marker is on a type that it does not support |
//! | KW102 | a marker names a field that does not exist |
//! | KW103 | a keyword that CRD schemas do not support |
//! | KW104 | a `None` is serialized as null, but the schema is not nullable |
//! | KW105 | an enum that CRD schemas cannot represent |
//! | KW106 | a recursive type |
//! | KW107 | a type without values, or with null only |
//! | KW108 | a constraint that CRD schemas cannot express |
//! | KW109 | kube's derive panics |
//! | KW110 | schemars drops a validator: reported by `dropped_validators`, with the feature `sources` |
//! | KW120 | not exactly one version is the storage version |
//! | KW121 | a version is declared twice |
//! | KW122 | versions differ in a common property |

mod describe;
mod merge;

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
#[cfg(feature = "types")]
mod validators;

pub use describe::limit_descriptions;
pub use merge::{CrdFile, Merged, file_name, merge, merge_all};
#[cfg(feature = "sources")]
pub use sources::dropped_validators;
#[cfg(feature = "types")]
pub use typed::{Described, declared, kind, of, with};
#[cfg(feature = "types")]
pub use upstream::Options;
