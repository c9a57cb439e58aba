//! Common Expression Language, as Kubernetes uses it.
//!
//! An [`Env`] declares variables, [`Program::compile`] checks an expression against it, and
//! [`Program::eval`] runs it with [`Bindings`] and a budget. [`rules`] compiles and runs the validation rules of a
//! structural schema (`x-kubernetes-validations`).
//!
//! Error messages and their positions, the function libraries and all costs are those of cel-go and Kubernetes.
//! Expressions cannot loop forever: their cost is limited before and while they run. This crate does no I/O, reads no
//! clock and knows no API server.
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

/// What one expression of a rule or policy may cost when it runs.
pub const PER_CALL_LIMIT: u64 = 1_000_000;

/// What all rules of a custom resource, or all expressions of a policy, may cost together.
pub const RUNTIME_BUDGET: i64 = 10_000_000;

/// What all match conditions of one webhook or policy may cost together.
pub const MATCH_CONDITIONS_BUDGET: i64 = 2_500_000;

#[cfg(test)]
mod tests;
