//! Controllers of this operator.
