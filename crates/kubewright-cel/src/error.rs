//! Why an expression cannot be compiled, or has no value.

use std::borrow::Cow;

use super::types::Type;

/// Why an expression cannot be used. The text is what Kubernetes puts behind the expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// It is no expression, or its types do not fit. The text is cel-go's, with the place.
    #[error("compilation failed: {0}")]
    Invalid(String),
    /// Its value is of another type than wanted.
    #[error("must evaluate to {wanted} but got {found}")]
    ResultType {
        /// The type that is wanted.
        wanted: Type,
        /// The type that it has.
        found: Type,
    },
    /// Its value is of none of the types that are wanted.
    #[error("must evaluate to one of {wanted} but got {found}")]
    ResultTypes {
        /// The types that are wanted, as Go prints them.
        wanted: &'static str,
        /// The type that it has.
        found: Type,
    },
    /// A constant part of it has no value.
    #[error("program instantiation failed: {0}")]
    Constant(String),
}

/// Why an expression has no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EvalError {
    /// Something in it failed. The text is cel-go's.
    #[error("{0}")]
    Failed(Cow<'static, str>),
    /// It did more work than allowed.
    #[error("operation cancelled: actual cost limit exceeded")]
    CostLimitExceeded,
}

impl EvalError {
    pub(crate) fn new(message: impl Into<Cow<'static, str>>) -> Self {
        Self::Failed(message.into())
    }

    /// No function fits the values at hand, and nothing more is told.
    pub(crate) fn no_overload() -> Self {
        Self::new("no such overload")
    }

    pub(crate) fn no_key(key: &str) -> Self {
        Self::new(format!("no such key: {key}"))
    }
}
