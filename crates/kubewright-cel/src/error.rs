//! Compile and evaluation errors.

use std::borrow::Cow;

use super::types::Type;

/// Why an expression does not compile. Kubernetes appends this text to the expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// A syntax or type error. The text is cel-go's and includes the position.
    #[error("compilation failed: {0}")]
    Invalid(String),
    /// The result type differs from the expected one.
    #[error("must evaluate to {wanted} but got {found}")]
    ResultType {
        /// The expected type.
        wanted: Type,
        /// The actual type.
        found: Type,
    },
    /// The result type is none of the expected ones.
    #[error("must evaluate to one of {wanted} but got {found}")]
    ResultTypes {
        /// The expected types, as Go prints them.
        wanted: &'static str,
        /// The actual type.
        found: Type,
    },
    /// A constant subexpression fails to evaluate.
    #[error("program instantiation failed: {0}")]
    Constant(String),
}

/// Why the evaluation of an expression failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EvalError {
    /// An operation failed. The text is cel-go's.
    #[error("{0}")]
    Failed(Cow<'static, str>),
    /// The evaluation exceeded its cost limit.
    #[error("operation cancelled: actual cost limit exceeded")]
    CostLimitExceeded,
}

impl EvalError {
    pub(crate) fn new(message: impl Into<Cow<'static, str>>) -> Self {
        Self::Failed(message.into())
    }

    /// No overload matches the argument types at run time.
    pub(crate) fn no_overload() -> Self {
        Self::new("no such overload")
    }

    pub(crate) fn no_key(key: &str) -> Self {
        Self::new(format!("no such key: {key}"))
    }
}
