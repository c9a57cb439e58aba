//! Common Expression Language (CEL), as Kubernetes uses it.
//!
//! An [`Env`] declares variables, [`Program::compile`] type-checks an expression against it, and
//! [`Program::eval`] runs it with [`Bindings`] and a cost limit. [`rules`] compiles and runs the validation
//! rules of a structural schema (`x-kubernetes-validations`).
//!
//! Error messages and their positions, function libraries and costs match cel-go and Kubernetes. Every
//! expression terminates: its cost is limited at compile time and at run time. This crate does no I/O and
//! does not read the clock.
//!
//! ```
//! use kubewright_cel::{Env, Program, Type};
//!
//! let env = Env::new().with_variable("object", Type::Dyn);
//! let error = Program::compile(&env, "object +", None).unwrap_err();
//! assert!(error.to_string().starts_with("compilation failed: ERROR: <input>:1:9: Syntax error: mismatched input"));
//! ```
//!
//! # From the README
#![doc = include_str!("../README.md")]

mod antlr;
mod ast;
mod checker;
mod cost;
mod data;
mod decls;
mod env;
mod error;
mod escape;
mod eval;
pub mod go_regex;
mod lexer;
mod library;
mod macros;
mod parser;
mod program;
pub mod rules;
mod schema;
mod source;
mod types;
mod validators;
mod value;

pub use env::Env;
pub use error::{CompileError, EvalError};
pub use escape::escape as escape_name;
pub use eval::Evaluation;
pub use library::authz::{
    Authorization, AuthorizationCheck, AuthorizationDecision, Authorizer, ResourceCheck,
};
pub use library::formats::NamedFormat;
pub use library::semver::Semver;
pub use library::time::Timestamp;
pub use library::url::Url;
pub use program::{Bindings, Program};
pub use types::Type;
pub use value::{Extension, List, Map, Value};

/// Cost limit of one expression of a rule or policy.
pub const PER_CALL_LIMIT: u64 = 1_000_000;

/// Total cost limit of all rules of a custom resource, or of all expressions of a policy.
pub const RUNTIME_BUDGET: i64 = 10_000_000;

/// Total cost limit of all match conditions of one webhook or policy.
pub const MATCH_CONDITIONS_BUDGET: i64 = 2_500_000;

#[cfg(test)]
mod tests;
