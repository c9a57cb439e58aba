//! Common Expression Language, as Kubernetes uses it.
//!
//! An [`Env`] declares variables, [`Program::compile`] checks an expression against it, and
//! [`Program::eval`] runs it with [`Bindings`] and a budget. [`rules`] puts validation rules of custom
//! resources on top.
//!
//! Everything that users see is cel-go's and Kubernetes': error texts and their places, which functions there
//! are, which numbers decide what is too expensive. Expressions cannot loop forever, and what they may cost
//! is limited before and while they run.
//!
//! ```
//! use kubewright_cel::{Bindings, Env, Program, Type, Value};
//!
//! let env = Env::new().with_variable("object", Type::Dyn);
//! let program = Program::compile(&env, "object.replicas < 5", Some(&Type::Bool)).unwrap();
//! let object = serde_json::json!({"replicas": 3});
//! let bindings = Bindings::new().with("object", Value::from(&object));
//! let found = program.eval(&bindings, 1_000_000);
//! assert!(matches!(found.value, Ok(Value::Bool(true))));
//!
//! let error = Program::compile(&env, "object +", None).unwrap_err();
//! assert!(error.to_string().starts_with("compilation failed: ERROR: <input>:1:9: Syntax error: mismatched input"));
//! ```

pub mod admission;
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
mod recovery;
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
