//! Limits of concurrent requests and of buffered bodies.
//!
//! The numbers are kube-apiserver's defaults. As upstream, long-running requests and members of `system:masters` are
//! not limited.

use http::{HeaderValue, Method, Response, StatusCode, header};
use kubewright_apimachinery::status::ApiError;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::authn::MASTERS;
use crate::encoding::body::Body;
use crate::encoding::response;
use crate::request::Request;

/// `--max-mutating-requests-inflight`.
const MUTATING: usize = 200;
/// `--max-requests-inflight`.
const READ_ONLY: usize = 400;
/// Memory for bodies that are being received or handled.
const BODIES: usize = 128 << 20;
/// Granularity of [`BODIES`]. Smaller bodies are not counted.
const UNIT: usize = 64 << 10;
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("1");

/// The limits of one server.
pub(crate) struct RequestLimits {
    mutating: Semaphore,
    read_only: Semaphore,
    bodies: Semaphore,
}

/// The request exceeds a limit.
#[derive(Debug)]
pub(crate) struct TooManyRequests;

impl Default for RequestLimits {
    fn default() -> Self {
        Self {
            mutating: Semaphore::new(MUTATING),
            read_only: Semaphore::new(READ_ONLY),
            bodies: Semaphore::new(BODIES / UNIT),
        }
    }
}

impl RequestLimits {
    /// Counts a request until the permit is dropped. `None` for requests that are not limited.
    pub(crate) fn admit(&self, request: &Request) -> Result<Option<SemaphorePermit<'_>>, TooManyRequests> {
        if request.is_long_running() || request.user.is_in(MASTERS) {
            return Ok(None);
        }
        let limit = match request.method {
            Method::GET | Method::HEAD => &self.read_only,
            _ => &self.mutating,
        };
        limit.try_acquire().map(Some).map_err(|_| TooManyRequests)
    }

    /// Reserves memory for a body that grows by `bytes`, if it is large.
    pub(crate) fn reserve(&self, bytes: usize) -> Result<SemaphorePermit<'_>, ApiError> {
        let units = u32::try_from(bytes / UNIT).unwrap_or(u32::MAX);
        self.bodies.try_acquire_many(units).map_err(|_| {
            ApiError::new(
                429,
                "TooManyRequests",
                "too many request bodies are being received; try again later",
            )
            .with_retry_after(1)
        })
    }
}

impl TooManyRequests {
    /// Upstream's response, which is not a Status.
    pub(crate) fn response() -> Response<Body> {
        let text = "Too many requests, please try again later.\n";
        let mut response =
            response::respond(StatusCode::TOO_MANY_REQUESTS, "text/plain; charset=utf-8", text);
        let headers = response.headers_mut();
        headers.insert(header::RETRY_AFTER, RETRY_AFTER);
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        response
    }
}
