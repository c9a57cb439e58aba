//! API types of this operator.
