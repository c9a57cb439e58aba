//! Sends writes to the API server and classifies the responses.

use std::time::Duration;

use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::json;
use tokio::time::timeout;

use super::correlator::{Id, Outcome, Request, Write};

/// The timeout of a write. Without it, a dead connection would occupy its slot forever.
const TIMEOUT: Duration = Duration::from_secs(30);

pub(super) struct Sink {
    client: kube::Client,
}

/// The result of a write.
pub(super) struct Answer {
    pub(super) id: Id,
    /// `namespace/name` of the Event, for the log.
    pub(super) name: String,
    pub(super) outcome: Outcome,
    /// The error, if it should be logged.
    pub(super) error: Option<WriteError>,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum WriteError {
    #[error(transparent)]
    Client(kube::Error),
    #[error("no response within {TIMEOUT:?}")]
    Timeout,
}

impl Sink {
    pub(super) fn new(client: kube::Client) -> Self {
        Self { client }
    }

    /// Sends a write.
    pub(super) fn send(&self, write: Write) -> impl Future<Output = Answer> + Send + use<> {
        let api: Api<Event> = Api::namespaced(self.client.clone(), &write.namespace);
        async move {
            let Write { id, namespace, name, retried, request } = write;
            let creates = matches!(request, Request::Create(_));
            let answer = timeout(TIMEOUT, async {
                match request {
                    Request::Create(event) => api.create(&PostParams::default(), &event).await,
                    Request::Patch(series) => {
                        let patch = Patch::Strategic(json!({"series": series}));
                        api.patch(&name, &PatchParams::default(), &patch).await
                    }
                }
            });
            let (outcome, error) = match answer.await {
                Ok(Ok(_)) => (Outcome::Written, None),
                Ok(Err(error)) => match meaning(&error, creates, retried) {
                    (outcome, Tell::Yes) => (outcome, Some(WriteError::Client(error))),
                    (outcome, Tell::No) => (outcome, None),
                },
                Err(_) => (Outcome::Failed, Some(WriteError::Timeout)),
            };
            Answer { id, name: format!("{namespace}/{name}"), outcome, error }
        }
    }
}

/// Whether to log a failure.
#[derive(Debug, PartialEq)]
enum Tell {
    Yes,
    No,
}

fn meaning(error: &kube::Error, creates: bool, retried: bool) -> (Outcome, Tell) {
    let status = match error {
        kube::Error::Api(status) => status,
        // A retry would send the same invalid request.
        kube::Error::BuildRequest(_) | kube::Error::HttpError(_) => return (Outcome::Refused, Tell::Yes),
        _ => return (Outcome::Failed, Tell::Yes),
    };
    let causes = status.details.iter().flat_map(|details| &details.causes);
    match status.code {
        // Events expire after an hour, so the Event to patch may be gone.
        404 if !creates => (Outcome::Gone, Tell::No),
        // An earlier attempt succeeded, but its response was lost.
        409 if creates && retried => (Outcome::Exists, Tell::No),
        429 | 500.. | 0 => (Outcome::Failed, Tell::Yes),
        // Rejections in a terminating namespace are expected.
        _ if causes.into_iter().any(|cause| cause.reason == "NamespaceTerminating") => {
            (Outcome::Refused, Tell::No)
        }
        _ => (Outcome::Refused, Tell::Yes),
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    fn answer(code: u16, creates: bool, retried: bool) -> (Outcome, Tell) {
        let status = Status { code, ..Status::failure("no", "Reason") };
        meaning(&kube::Error::Api(Box::new(status)), creates, retried)
    }

    #[test]
    fn transient_failures_are_retried_and_permanent_ones_are_not() {
        for code in [429, 500, 503, 504] {
            assert_eq!(answer(code, true, false).0, Outcome::Failed, "{code}");
        }
        for code in [400, 401, 403, 404, 409, 422] {
            assert_eq!(answer(code, true, false), (Outcome::Refused, Tell::Yes), "{code}");
        }
        assert_eq!(answer(404, false, false), (Outcome::Gone, Tell::No));
        assert_eq!(answer(409, true, true), (Outcome::Exists, Tell::No));
        let dead = kube::Error::Service(std::io::Error::other("connection refused").into());
        assert_eq!(meaning(&dead, true, false).0, Outcome::Failed);
    }

    #[test]
    fn an_event_in_a_terminating_namespace_is_rejected_without_a_log_line() {
        let status = serde_json::from_value(json!({
            "code": 403,
            "details": {"causes": [{"reason": "NamespaceTerminating"}]},
        }));
        let meaning = meaning(&kube::Error::Api(status.unwrap()), true, false);
        assert_eq!(meaning, (Outcome::Refused, Tell::No));
    }
}
