//! The controllers of this operator.
