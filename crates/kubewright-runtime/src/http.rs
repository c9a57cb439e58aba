//! HTTP requests and responses as bytes, on kube's client.
//!
//! All requests of this crate to an API server go through [`send`] or [`open`]. Only errors are decoded here: the cache
//! stores objects as the server sent them.

use bytes::{Bytes, BytesMut};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Collected};
use kube::client::Body;
use kube::core::Status;

use crate::client::Error;
use crate::connect::deadline::DeadlineExceeded;
use crate::error::Chain;
use crate::journal::Asking;
use crate::traces;

/// The `Accept` header for metadata only.
pub(crate) const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
/// The same for lists.
pub(crate) const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// How much of an error body is kept if it is not a Status.
const SHOWN: usize = 512;

/// Sends a request and reads the whole response.
pub(crate) async fn send(client: &kube::Client, request: Request<Vec<u8>>) -> Result<Bytes, Error> {
    read(open(client, request).await?.into_body()).await
}

/// Like [`send`], and records the outcome in the journal.
pub(crate) async fn send_followed(
    client: &kube::Client,
    request: Request<Vec<u8>>,
    asking: Asking,
) -> Result<Bytes, Error> {
    let answer = match open(client, request).await {
        Ok(answer) => {
            let code = answer.status().as_u16();
            read(answer.into_body()).await.map(|body| (code, body))
        }
        Err(error) => Err(error),
    };
    let body = answer.as_ref().ok().map(|(_, body)| &**body);
    let outcome = match &answer {
        Ok((code, _)) => Ok(*code),
        Err(Error::Status(status)) => Ok(status.code),
        Err(error) => Err(Chain(error).to_string()),
    };
    asking.answered(outcome, body);
    answer.map(|(_, body)| body)
}

/// Sends a request and returns the response for streaming, after checking its status code.
pub(crate) async fn open(client: &kube::Client, request: Request<Vec<u8>>) -> Result<Response<Body>, Error> {
    let response = client.send(request.map(Body::from)).await.map_err(unanswered)?;
    let code = response.status();
    traces::answered(code);
    if code.is_success() {
        return Ok(response);
    }
    let body = read(response.into_body()).await.unwrap_or_default();
    Err(Error::Status(Box::new(failure(code, &body))))
}

async fn read(body: Body) -> Result<Bytes, Error> {
    body.collect().await.map(Collected::to_bytes).map_err(unanswered)
}

/// The error of a request without a complete response.
fn unanswered(error: kube::Error) -> Error {
    let mut causes =
        std::iter::successors(Some(&error as &(dyn std::error::Error + 'static)), |&it| it.source());
    match causes.find_map(|cause| cause.downcast_ref::<DeadlineExceeded>()) {
        Some(DeadlineExceeded(within)) => Error::Timeout(*within),
        None => Error::Send(error),
    }
}

/// The response as text. The UTF-8 check is done once, not again for each JSON string.
pub(crate) fn text(body: &[u8]) -> Result<&str, serde_json::Error> {
    std::str::from_utf8(body).map_err(serde::de::Error::custom)
}

fn failure(code: StatusCode, body: &[u8]) -> Status {
    match serde_json::from_slice::<Status>(body) {
        Ok(mut status) if !(status.message.is_empty() && status.reason.is_empty()) => {
            if status.code == 0 {
                status.code = code.as_u16();
            }
            status
        }
        // A response of a proxy, or of a server that is starting.
        _ => {
            let shown = String::from_utf8_lossy(&body[..body.len().min(SHOWN)]);
            Status::failure(&format!("{code}: {}", shown.trim()), "").with_code(code.as_u16())
        }
    }
}

/// The lines of a streaming response.
pub(crate) struct Lines {
    body: Body,
    buffer: BytesMut,
    /// The length of the buffer's prefix that has no line break.
    searched: usize,
}

impl Lines {
    pub(crate) fn new(body: Body) -> Self {
        Self { body, buffer: BytesMut::new(), searched: 0 }
    }

    /// The next line without its line break; `None` at the end. An incomplete last line is dropped.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        loop {
            if let Some(line) = self.buffered() {
                if !line.is_empty() {
                    return Ok(Some(line));
                }
                continue;
            }
            match self.body.frame().await {
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        self.buffer.extend_from_slice(&data);
                    }
                }
                Some(Err(error)) => return Err(Error::Send(error)),
                None => return Ok(None),
            }
        }
    }

    fn buffered(&mut self) -> Option<Bytes> {
        let found = memchr::memchr(b'\n', &self.buffer[self.searched..]);
        let Some(found) = found else {
            self.searched = self.buffer.len();
            return None;
        };
        let mut line = self.buffer.split_to(self.searched + found + 1);
        line.truncate(line.len() - 1);
        self.searched = 0;
        Some(line.freeze())
    }
}
