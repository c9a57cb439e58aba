//! What expressions cost.
//!
//! [`runtime`] counts while one runs, [`estimate`] says beforehand what the worst case is. Both follow cel-go
//! and Kubernetes to the number: a rule that upstream accepts may not be refused here, nor the reverse.

pub(crate) mod estimate;
mod functions;
pub(crate) mod range;
pub(crate) mod runtime;

/// What going over one character costs.
const PER_CHARACTER: f64 = 0.1;

/// What one character of a regular expression costs for each character it is matched with.
const PER_REGEX_CHARACTER: f64 = 0.25;

/// What one question to the authorizer costs.
const AUTHORIZATION_CHECK: u64 = 350_000;

const SELECT: u64 = 1;
const LIST: u64 = 10;
const MAP: u64 = 30;
const STRUCT: u64 = 40;

/// Functions that cost one whatever they are given: they look at what was parsed before.
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
