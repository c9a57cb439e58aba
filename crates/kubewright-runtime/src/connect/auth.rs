//! Adds credentials to the headers of each request.
//!
//! Owns [`Authorize`] and the token file. Invariant: an expired token is never sent if a newer one is available. kube's
//! layer also supports the `auth-provider` that kubectl 1.26 removed, at the cost of a JSONPath and a regular
//! expression engine.
//!
//! The `Impersonate-*` headers are set elsewhere.

mod plugin;

use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use base64::Engine as _;
use futures_util::future::BoxFuture;
use http::header::AUTHORIZATION;
use http::{HeaderValue, Request, Response, StatusCode};
use kube::client::Body;
use kube::config::AuthInfo;
use secrecy::ExposeSecret as _;
use tokio::time::Instant;
use tower::{BoxError, Service, ServiceExt as _};

use super::tls::{Identity, TlsError};
use crate::Clock;

use plugin::Plugin;
pub use plugin::PluginError;

/// The minimum time between two reads of the token file. It is short, so that a new token is used soon.
const REREAD: Duration = Duration::from_secs(1);

/// The credentials are missing or invalid.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuthError {
    /// The credential type is no longer supported.
    #[error(
        "the kubeconfig's user has the auth-provider {0:?}, which kubectl 1.26 removed; use an exec plugin instead: \
         `kubectl config set-credentials NAME --exec-command COMMAND`"
    )]
    Provider(String),
    /// The token, or the user name and password, is not a valid header.
    #[error("{0} is not a valid header; it must be one line of printable ASCII")]
    Header(&'static str),
    /// The token file cannot be read.
    #[error("failed to read the token file {}", path.display())]
    TokenFile {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// The token file is empty.
    #[error("the token file {} is empty", .0.display())]
    NoToken(PathBuf),
    /// An exec plugin returned no credentials.
    #[error(transparent)]
    Plugin(#[from] PluginError),
    /// The client certificate is invalid.
    #[error(transparent)]
    Certificate(#[from] TlsError),
}

/// The credentials that are sent in a header.
#[derive(Clone)]
pub(super) enum Credentials {
    /// Client certificate or anonymous.
    None,
    Fixed(HeaderValue),
    File(Arc<TokenFile>),
    Plugin(Arc<Plugin>),
}

impl Credentials {
    /// The credentials of a user. Runs an exec plugin once, so that its errors are reported at startup.
    pub(super) fn of(
        user: &AuthInfo,
        identity: &Arc<Identity>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, AuthError> {
        if let Some(provider) = &user.auth_provider {
            return Err(AuthError::Provider(provider.name.clone()));
        }
        if let (Some(name), Some(password)) = (&user.username, &user.password) {
            let pair = format!("{name}:{}", password.expose_secret());
            let pair = base64::engine::general_purpose::STANDARD.encode(pair);
            return Ok(Self::Fixed(header("Basic", &pair, "the user name with its password")?));
        }
        if let Some(token) = &user.token {
            return Ok(Self::Fixed(header("Bearer", token.expose_secret().trim(), "the token")?));
        }
        if let Some(path) = &user.token_file {
            return Ok(Self::File(Arc::new(TokenFile::read(path.into())?)));
        }
        if let Some(exec) = &user.exec {
            return Ok(Self::Plugin(Arc::new(Plugin::start(exec.clone(), identity.clone(), clock)?)));
        }
        Ok(Self::None)
    }
}

fn header(scheme: &str, secret: &str, what: &'static str) -> Result<HeaderValue, AuthError> {
    let mut value =
        HeaderValue::try_from(format!("{scheme} {secret}")).map_err(|_| AuthError::Header(what))?;
    value.set_sensitive(true);
    Ok(value)
}

/// A token file, such as that of a service account. If it cannot be read again, the last token is kept: some agents
/// delete the file after it was read.
pub(super) struct TokenFile {
    path: PathBuf,
    /// The token, and when it was read; `None` to read it again.
    last: Mutex<(HeaderValue, Option<Instant>)>,
}

impl TokenFile {
    fn read(path: PathBuf) -> Result<Self, AuthError> {
        let first = Self::header_of(&path)?;
        Ok(Self { path, last: Mutex::new((first, Some(Instant::now()))) })
    }

    fn header_of(path: &Path) -> Result<HeaderValue, AuthError> {
        let token = std::fs::read_to_string(path)
            .map_err(|source| AuthError::TokenFile { path: path.to_owned(), source })?;
        match token.trim() {
            "" => Err(AuthError::NoToken(path.to_owned())),
            token => header("Bearer", token, "the token of the token file"),
        }
    }

    /// Reads the file synchronously: dispatching to another thread would cost more than the read.
    fn header(&self) -> HeaderValue {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.1.is_none_or(|read| read.elapsed() >= REREAD) {
            match Self::header_of(&self.path) {
                Ok(header) => last.0 = header,
                Err(error) => {
                    let error: &dyn std::error::Error = &error;
                    tracing::debug!(error, path = %self.path.display(), "Failed to reload the token file; using the last token");
                }
            }
            last.1 = Some(Instant::now());
        }
        last.0.clone()
    }

    /// Reads the file again at the next request, because the server rejected the token.
    fn expire(&self) {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).1 = None;
    }
}

/// Marks a 401 response whose request can succeed with new credentials.
#[derive(Debug, Clone, Copy)]
pub(super) struct Renewable;

/// Adds credentials to each request.
#[derive(Clone)]
pub(super) struct Authorize<S> {
    inner: S,
    credentials: Credentials,
}

impl<S> Authorize<S> {
    pub(super) fn new(inner: S, credentials: Credentials) -> Self {
        Self { inner, credentials }
    }
}

impl<S, B> Service<Request<Body>> for Authorize<S>
where
    S: Service<Request<Body>, Response = Response<B>, Error = BoxError> + Clone + Send + 'static,
    S::Future: Send + Unpin,
{
    type Response = Response<B>;
    type Error = BoxError;
    type Future = Authorized<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let header = match &self.credentials {
            Credentials::None => None,
            Credentials::Fixed(header) => Some(header.clone()),
            Credentials::File(file) => {
                let header = file.header();
                request.headers_mut().insert(AUTHORIZATION, header.clone());
                return Authorized::File(self.inner.call(request), file.clone(), header);
            }
            Credentials::Plugin(plugin) => {
                let (plugin, inner) = (plugin.clone(), self.inner.clone());
                return Authorized::Waits(Box::pin(async move {
                    let header = plugin.header().await?;
                    if let Some(header) = &header {
                        request.headers_mut().insert(AUTHORIZATION, header.clone());
                    }
                    let mut answer = inner.oneshot(request).await?;
                    if answer.status() == StatusCode::UNAUTHORIZED {
                        plugin.was_refused(header.as_ref());
                        answer.extensions_mut().insert(Renewable);
                    }
                    Ok(answer)
                }));
            }
        };
        if let Some(header) = header {
            request.headers_mut().insert(AUTHORIZATION, header);
        }
        Authorized::Sent(self.inner.call(request))
    }
}

/// The response future, after that of a plugin if there is one.
pub(super) enum Authorized<F: Future> {
    Sent(F),
    /// With the token that was sent.
    File(F, Arc<TokenFile>, HeaderValue),
    Waits(BoxFuture<'static, F::Output>),
}

impl<F, B> Future for Authorized<F>
where
    F: Future<Output = Result<Response<B>, BoxError>> + Unpin,
{
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        match &mut *self {
            Self::Sent(answer) => Pin::new(answer).poll(cx),
            Self::File(answer, file, sent) => Pin::new(answer).poll(cx).map_ok(|mut answer| {
                if answer.status() == StatusCode::UNAUTHORIZED {
                    file.expire();
                    if file.header() != *sent {
                        answer.extensions_mut().insert(Renewable);
                    }
                }
                answer
            }),
            Self::Waits(answer) => answer.as_mut().poll(cx),
        }
    }
}

#[cfg(test)]
mod tests;
