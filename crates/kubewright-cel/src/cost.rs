//! Cost of expressions.
//!
//! [`estimate`] computes the worst case at compile time, [`runtime`] tracks the actual cost. Both must return
//! exactly the numbers of cel-go and Kubernetes: otherwise this crate would accept or reject different rules
//! than an API server.

pub(crate) mod estimate;
mod functions;
pub(crate) mod range;
pub(crate) mod runtime;

/// Cost of traversing one character of a string.
const PER_CHARACTER: f64 = 0.1;

/// Cost of one regex character per character of the matched string.
const PER_REGEX_CHARACTER: f64 = 0.25;

/// Cost of one authorization check.
const AUTHORIZATION_CHECK: u64 = 350_000;

const SELECT: u64 = 1;
const LIST: u64 = 10;
const MAP: u64 = 30;
const STRUCT: u64 = 40;

/// Functions with a constant cost of one, because they only access an already parsed value.
fn costs_one(function: &str) -> bool {
    matches!(
        function,
        "masked"
            | "prefixLength"
            | "family"
            | "isUnspecified"
            | "isLoopback"
            | "isLinkLocalMulticast"
            | "isLinkLocalUnicast"
            | "isGlobalUnicast"
            | "format.named"
            | "sign"
            | "asInteger"
            | "isInteger"
            | "asApproximateFloat"
            | "isGreaterThan"
            | "isLessThan"
            | "compareTo"
            | "add"
            | "sub"
            | "major"
            | "minor"
            | "patch"
            | "getScheme"
            | "getHostname"
            | "getHost"
            | "getPort"
            | "getEscapedPath"
            | "getQuery"
            | "path"
            | "group"
            | "serviceAccount"
            | "resource"
            | "subresource"
            | "namespace"
            | "name"
            | "fieldSelector"
            | "labelSelector"
            | "allowed"
            | "reason"
            | "error"
            | "errored"
    )
}
