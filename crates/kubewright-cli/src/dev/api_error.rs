//! Readable errors of the Kubernetes client.

use anyhow::anyhow;

/// The API server's message, or why there was no response.
pub(crate) fn api_error(error: kube::Error) -> anyhow::Error {
    match error {
        // The client's own text has all fields of the response.
        kube::Error::Api(status) if !status.message.is_empty() => anyhow!("{}", status.message),
        error => anyhow!(error),
    }
}
