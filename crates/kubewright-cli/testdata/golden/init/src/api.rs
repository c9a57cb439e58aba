//! The kinds of this operator.
