//! API groups that the operator serves itself, behind an APIService (API aggregation).
//!
//! The API server forwards requests for `/apis/GROUP/VERSION` to the operator's Service, so the webhook server answers
//! them with the same certificate. Owns the path and what a handler sees of a request. Responses have a whole body, so
//! watches are not supported.
//!
//! The server does not verify client certificates and cannot distinguish a forwarded request from that of another client.
//! Therefore handlers do not get the headers that name the user.

use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::HeaderMap;
use http::header::HeaderName;

use super::RegisterError;

/// The headers with the user of a forwarded request start with it.
const REMOTE: &str = "x-remote-";

/// Serves one version of an API group. Register it with [`Manager::api_service`](crate::Manager::api_service).
///
/// It must answer a GET of `/apis/GROUP/VERSION` with an `APIResourceList`: the API server tests with it whether the
/// APIService is available. Requests have no `X-Remote-User` header, so return only what every client may read.
///
/// ```
/// use bytes::Bytes;
/// use kubewright_runtime::webhook::ApiHandler;
///
/// struct Prices;
///
/// impl ApiHandler for Prices {
///     async fn handle(&self, request: http::Request<Bytes>) -> http::Response<Bytes> {
///         let list = r#"{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"prices.example.com/v1","resources":[]}"#;
///         let (status, body) = match request.uri().path() {
///             "/apis/prices.example.com/v1" => (200, list),
///             _ => (404, "{}"),
///         };
///         let response = http::Response::builder().status(status).header("content-type", "application/json");
///         response.body(Bytes::from(body)).expect("a valid response")
///     }
/// }
/// ```
pub trait ApiHandler: Send + Sync + 'static {
    /// Answers a request below `/apis/GROUP/VERSION`.
    fn handle(&self, request: http::Request<Bytes>) -> impl Future<Output = http::Response<Bytes>> + Send;
}

/// [`ApiHandler`] as a trait object.
pub(super) trait DynApi: Send + Sync {
    fn handle(&self, request: http::Request<Bytes>) -> BoxFuture<'_, http::Response<Bytes>>;
}

impl<H: ApiHandler> DynApi for H {
    fn handle(&self, request: http::Request<Bytes>) -> BoxFuture<'_, http::Response<Bytes>> {
        ApiHandler::handle(self, request).boxed()
    }
}

/// A version of an API group that the operator serves.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct GroupVersion {
    /// API group.
    pub group: String,
    /// Version.
    pub version: String,
}

impl GroupVersion {
    pub(crate) fn new(group: &str, version: &str) -> Result<Self, RegisterError> {
        let is_segment = |text: &str| {
            let is_known =
                |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-".contains(&byte);
            !text.is_empty() && text.bytes().all(is_known)
        };
        let (group, version) = (group.to_owned(), version.to_owned());
        if is_segment(&group) && is_segment(&version) && !version.contains('.') {
            Ok(Self { group, version })
        } else {
            Err(RegisterError::BadGroupVersion { group, version })
        }
    }

    /// The name of the APIService.
    pub(crate) fn api_service(&self) -> String {
        format!("{}.{}", self.version, self.group)
    }

    pub(super) fn path(&self) -> String {
        format!("/apis/{}/{}", self.group, self.version)
    }

    /// Whether a path belongs to this version.
    pub(super) fn serves(&self, path: &str) -> bool {
        path.strip_prefix(&*self.path()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

/// Removes the headers that name the user.
pub(super) fn without_user(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> =
        headers.keys().filter(|name| name.as_str().starts_with(REMOTE)).cloned().collect();
    for name in named {
        headers.remove(name);
    }
}
