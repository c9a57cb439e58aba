//! Empty: only the lock file of this package is used.
