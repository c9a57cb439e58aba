//! Errors of the Kubernetes client, for people.

use anyhow::anyhow;

/// What the API server answered, in its own words, or why there was no answer.
pub(crate) fn told(error: kube::Error) -> anyhow::Error {
    match error {
        // The client's own text for it has all fields of the answer.
        kube::Error::Api(status) if !status.message.is_empty() => anyhow!("{}", status.message),
        error => anyhow!(error),
    }
}
