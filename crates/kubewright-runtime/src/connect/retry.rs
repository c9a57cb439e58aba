//! Retries of requests, by client-go's rules.
//!
//! [`Retries`] is the policy of the retry layer. A request is retried if
//!
//! - the server responded with 429 or 5xx and a `Retry-After` header, for any method;
//! - the server responded with 401 and the credentials have been renewed since; once only, and not a rule of client-go;
//! - the connection could not be opened, for any method: the server has not seen the request;
//! - the request is a read, and the connection broke before the response.
//!
//! Invariant: **a write that the server may have processed is not retried**, unless the server asks for it.

use std::error::Error;
use std::io;
use std::time::Duration;

use http::{Method, Request, Response, StatusCode, header};
use hyper_util::client::legacy;
use kube::client::Body;
use tokio::time::{Instant, Sleep};
use tower::BoxError;
use tower::retry::Policy;

use super::AuthError;
use super::auth::Renewable;
use super::observe::{self, ClientMetrics};

/// The maximum number of retries of one request, as in client-go.
const RETRIES: u32 = 10;
/// The maximum number of retries without a response. If the server is down, a request fails within 2 s.
const RECONNECTS: u32 = 5;
/// The first delay. It doubles with each retry. `Retry-After` can only make it longer.
const FIRST_DELAY: Duration = Duration::from_millis(50);
const LONGEST_DELAY: Duration = Duration::from_secs(1);

/// The retry state of one request. Each request has its own clone.
#[derive(Debug, Clone)]
pub(super) struct Retries {
    metrics: Option<ClientMetrics>,
    /// The deadline of the request. A retry that would come later is not made.
    within: Option<Duration>,
    started: Option<Instant>,
    attempts: u32,
    /// The number of attempts without a response.
    broken: u32,
    /// Whether the request was retried with new credentials.
    renewed: bool,
}

impl Retries {
    pub(super) fn new(metrics: Option<ClientMetrics>, within: Option<Duration>) -> Self {
        Self { metrics, within, started: None, attempts: 0, broken: 0, renewed: false }
    }

    /// Returns the delay before the next attempt, or `None` to give up.
    fn next<B>(&mut self, method: &Method, result: &Result<Response<B>, BoxError>) -> Option<Duration> {
        let asked = match result {
            Ok(response) if is_renewable(response) && !self.renewed => {
                self.renewed = true;
                Duration::ZERO
            }
            Ok(response) => retry_after(response)?,
            Err(error) => {
                self.broken += 1;
                let again = is_transient(method, &**error) && self.broken <= RECONNECTS;
                again.then_some(Duration::ZERO)?
            }
        };
        if self.attempts == RETRIES {
            return None;
        }
        let delay = asked.max(FIRST_DELAY.saturating_mul(1 << self.attempts).min(LONGEST_DELAY));
        let left =
            self.within.zip(self.started).map(|(within, started)| within.saturating_sub(started.elapsed()));
        if left.is_some_and(|left| delay >= left) {
            return None;
        }
        self.attempts += 1;
        Some(delay)
    }
}

impl<B> Policy<Request<Body>, Response<B>, BoxError> for Retries {
    type Future = Sleep;

    fn retry(
        &mut self,
        request: &mut Request<Body>,
        result: &mut Result<Response<B>, BoxError>,
    ) -> Option<Sleep> {
        let delay = self.next(request.method(), result)?;
        let (method, uri) = (request.method(), request.uri());
        let status = result.as_ref().ok().map(Response::status);
        let error = result.as_ref().err().map(|error| crate::error::Chain(&**error).to_string());
        macro_rules! log {
            ($level:ident) => {
                tracing::$level!(
                    %method, path = uri.path(), attempt = self.attempts,
                    status = status.map(|status| status.as_u16()), error, ?delay, "Retrying request"
                )
            };
        }
        // Log once per request: while a server is down, each request is retried several times.
        if self.attempts == 1 {
            log!(info);
        } else {
            log!(debug);
        }
        if let Some(metrics) = &self.metrics {
            metrics.count_retry(method, observe::host_of(uri), status);
        }
        Some(tokio::time::sleep(delay))
    }

    /// Streamed bodies cannot be cloned, so those requests are not retried.
    fn clone_request(&mut self, request: &Request<Body>) -> Option<Request<Body>> {
        self.started.get_or_insert_with(Instant::now);
        let body = request.body().try_clone()?;
        let mut clone = Request::new(body);
        *clone.method_mut() = request.method().clone();
        *clone.uri_mut() = request.uri().clone();
        *clone.version_mut() = request.version();
        *clone.headers_mut() = request.headers().clone();
        *clone.extensions_mut() = request.extensions().clone();
        Some(clone)
    }
}

/// Whether the server rejected the credentials and there are new ones. The server has not processed the request.
fn is_renewable<B>(response: &Response<B>) -> bool {
    response.status() == StatusCode::UNAUTHORIZED && response.extensions().get::<Renewable>().is_some()
}

/// The `Retry-After` delay. As in client-go, dates are ignored.
fn retry_after<B>(response: &Response<B>) -> Option<Duration> {
    let status = response.status();
    if status != StatusCode::TOO_MANY_REQUESTS && !status.is_server_error() {
        return None;
    }
    let seconds = response.headers().get(header::RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds))
}

/// Whether a retry can succeed and is safe if the first attempt was processed.
fn is_transient(method: &Method, error: &(dyn Error + 'static)) -> bool {
    let connects = was_not_sent(error);
    let is_read = matches!(*method, Method::GET | Method::HEAD);
    if !connects && !is_read {
        return false;
    }
    causes(error).any(|cause| {
        // Rejected certificates and proxies are permanent errors of other types.
        let network = cause.downcast_ref::<io::Error>().is_some_and(|error| {
            use io::ErrorKind as Kind;
            matches!(
                error.kind(),
                Kind::ConnectionRefused
                    | Kind::ConnectionReset
                    | Kind::ConnectionAborted
                    | Kind::BrokenPipe
                    | Kind::UnexpectedEof
            )
        });
        let http = cause.downcast_ref::<hyper::Error>();
        network || http.is_some_and(|error| !error.is_user() && !error.is_parse())
    })
}

/// Whether the server cannot have seen a request that failed with this error.
pub(crate) fn was_not_sent(error: &(dyn Error + 'static)) -> bool {
    causes(error).any(|cause| {
        let connect = cause.downcast_ref::<legacy::Error>().is_some_and(legacy::Error::is_connect);
        let refused = cause.downcast_ref::<io::Error>();
        connect
            || cause.is::<AuthError>()
            || refused.is_some_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
    })
}

/// The error and its sources.
fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(kind: io::ErrorKind) -> Result<Response<()>, BoxError> {
        Err(Box::new(io::Error::from(kind)))
    }

    fn answered(status: u16, retry_after: Option<&str>) -> Result<Response<()>, BoxError> {
        let mut response = Response::builder().status(status);
        if let Some(value) = retry_after {
            response = response.header(header::RETRY_AFTER, value);
        }
        response.body(()).map_err(Into::into)
    }

    fn is_retried(method: &Method, result: &Result<Response<()>, BoxError>) -> bool {
        Retries::new(None, None).next(method, result).is_some()
    }

    #[test]
    fn only_429_and_5xx_with_retry_after_are_retried() {
        for method in [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
            for status in [429, 500, 502, 503, 504] {
                assert!(is_retried(&method, &answered(status, Some("1"))), "{method} {status}");
                assert!(!is_retried(&method, &answered(status, None)), "{method} {status}");
                assert!(!is_retried(&method, &answered(status, Some("soon"))), "{method} {status}");
            }
            for status in [200, 401, 404, 409] {
                assert!(!is_retried(&method, &answered(status, Some("1"))), "{method} {status}");
            }
        }
    }

    #[test]
    fn a_write_is_retried_only_if_the_connection_could_not_be_opened() {
        use io::ErrorKind as Kind;
        for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
            assert!(is_retried(&method, &failed(Kind::ConnectionRefused)), "{method}");
            for kind in [Kind::ConnectionReset, Kind::BrokenPipe, Kind::UnexpectedEof, Kind::TimedOut] {
                assert!(!is_retried(&method, &failed(kind)), "{method} {kind}");
            }
        }
        for kind in [Kind::ConnectionRefused, Kind::ConnectionReset, Kind::UnexpectedEof] {
            assert!(is_retried(&Method::GET, &failed(kind)), "{kind}");
        }
        assert!(!is_retried(&Method::GET, &failed(Kind::InvalidData)), "a certificate stays wrong");
    }

    #[test]
    fn retries_are_bounded_and_their_delays_grow() {
        let delays = |result: &Result<Response<()>, BoxError>| {
            let mut retries = Retries::new(None, None);
            std::iter::from_fn(|| retries.next(&Method::GET, result))
                .map(|it| it.as_millis())
                .collect::<Vec<_>>()
        };
        assert_eq!(delays(&answered(503, Some("0"))), [50, 100, 200, 400, 800, 1000, 1000, 1000, 1000, 1000]);
        assert_eq!(delays(&answered(429, Some("7"))), [7000; 10]);
        assert_eq!(delays(&failed(io::ErrorKind::ConnectionReset)), [50, 100, 200, 400, 800]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_retry_after_the_deadline_is_not_waited_for() {
        let mut retries = Retries::new(None, Some(Duration::from_secs(30)));
        let request = Request::new(Body::empty());
        assert!(Policy::<_, Response<()>, _>::clone_request(&mut retries, &request).is_some());
        assert!(retries.next(&Method::GET, &answered(429, Some("29"))).is_some());
        tokio::time::advance(Duration::from_secs(29)).await;
        assert!(retries.next(&Method::GET, &answered(429, Some("1"))).is_none());
    }
}
