//! Authentication and authorization of requests for metrics and the debug page by the API server.
//!
//! A bearer token is checked with a TokenReview, and access to the path with a SubjectAccessReview. The operator needs
//! the ClusterRole `system:auth-delegator`, the client a ClusterRole with the `nonResourceURLs` of the path. Results
//! are cached as long as in kube-apiserver's delegated authentication, so that frequent scrapes cost no requests.
//! Failed reviews are not cached and deny the request.
//!
//! Reviews are plain JSON, because only a few fields are used and the typed structs would add about 100 kB to every
//! operator.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::{HeaderMap, Method, StatusCode, header};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::serve::{Response, text};

/// How long the result of a TokenReview is cached.
const TOKEN: Duration = Duration::from_secs(10);
/// How long an allowed access is cached: a removed permission ends after this time.
const ALLOWED: Duration = Duration::from_secs(10);
/// How long a denied access is cached.
const DENIED: Duration = Duration::from_secs(5);
/// The timeout of a review.
const PATIENCE: Duration = Duration::from_secs(10);
/// The capacity of each cache, so that guessed tokens cannot fill the memory.
const CAPACITY: usize = 1024;

/// The digest of a token; tokens themselves are not kept.
type Digest = Vec<u8>;

/// Authenticates and authorizes requests with the API server. Cheap to clone.
#[derive(Clone)]
pub struct Guard {
    client: kube::Client,
    /// The user of each token, as in the status of a TokenReview; `None` if it is not authenticated.
    tokens: Arc<Mutex<Remembered<Digest, Option<Value>>>>,
    access: Arc<Mutex<Remembered<String, bool>>>,
}

impl Guard {
    /// Creates a guard. The client must be allowed to create TokenReviews and SubjectAccessReviews.
    pub fn new(client: kube::Client) -> Self {
        Self { client, tokens: Arc::default(), access: Arc::default() }
    }

    /// Checks a request. The error is the response: 401 without a valid token, 403 without permission, 500 if a review
    /// failed.
    ///
    /// For an unknown token this returns 401, where controller-runtime returns 500.
    pub async fn check(&self, method: &Method, path: &str, headers: &HeaderMap) -> Result<(), Response> {
        let Some(token) = bearer(headers) else { return Err(unauthorized()) };
        let user = match self.user(token).await {
            Ok(Some(user)) => user,
            Ok(None) => return Err(unauthorized()),
            Err(error) => {
                let error: &dyn std::error::Error = &error;
                tracing::error!(error, path, "Authentication of request failed");
                return Err(text(StatusCode::INTERNAL_SERVER_ERROR, "Authentication failed\n"));
            }
        };
        let name = user["username"].as_str().unwrap_or_default();
        match self.allowed(&user, method, path).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(text(StatusCode::FORBIDDEN, format!("Authorization denied for user {name}\n"))),
            Err(error) => {
                let error: &dyn std::error::Error = &error;
                tracing::error!(error, user = name, path, "Authorization of request failed");
                let body = format!("Authorization for user {name} failed\n");
                Err(text(StatusCode::INTERNAL_SERVER_ERROR, body))
            }
        }
    }

    /// The user of a token; `None` if it is not authenticated.
    async fn user(&self, token: &str) -> Result<Option<Value>, AskError> {
        let key = digest(token.as_bytes());
        if let Some(known) = lock(&self.tokens).get(&key, Instant::now()) {
            return Ok(known);
        }
        let mut status =
            ask(&self.client, "authentication", "TokenReview", &json!({ "token": token })).await?;
        let user = (status["authenticated"] == true).then(|| take(&mut status, "user"));
        lock(&self.tokens).put(key, user.clone(), TOKEN, Instant::now());
        Ok(user)
    }

    async fn allowed(&self, user: &Value, method: &Method, path: &str) -> Result<bool, AskError> {
        let mut groups = user["groups"].as_array().cloned().unwrap_or_default();
        if !groups.iter().any(|group| group == "system:authenticated") {
            groups.push("system:authenticated".into());
        }
        let mut spec = json!({
            "groups": groups,
            "nonResourceAttributes": { "path": path, "verb": method.as_str().to_ascii_lowercase() },
        });
        for (of_user, of_review) in [("username", "user"), ("uid", "uid"), ("extra", "extra")] {
            if let Some(value) = user.get(of_user) {
                spec[of_review] = value.clone();
            }
        }
        let key = spec.to_string();
        if let Some(known) = lock(&self.access).get(&key, Instant::now()) {
            return Ok(known);
        }
        let status = ask(&self.client, "authorization", "SubjectAccessReview", &spec).await?;
        let allowed = status["allowed"] == true && status["denied"] != true;
        lock(&self.access).put(key, allowed, if allowed { ALLOWED } else { DENIED }, Instant::now());
        Ok(allowed)
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Guard")
    }
}

/// A review failed.
#[derive(Debug, thiserror::Error)]
enum AskError {
    #[error("TokenReview or SubjectAccessReview timed out after {PATIENCE:?}")]
    Late,
    #[error(
        "TokenReview or SubjectAccessReview failed; bind the ClusterRole system:auth-delegator to the operator's service \
         account"
    )]
    Review(#[source] kube::Error),
}

/// Creates a review and returns its status.
async fn ask(client: &kube::Client, group: &str, kind: &str, spec: &Value) -> Result<Value, AskError> {
    let group = format!("{group}.k8s.io/v1");
    let review = json!({ "apiVersion": group, "kind": kind, "metadata": {}, "spec": spec });
    let request = http::Request::post(format!("/apis/{group}/{}s", kind.to_ascii_lowercase()))
        .header(header::CONTENT_TYPE, "application/json")
        .body(review.to_string().into_bytes())
        .map_err(|error| AskError::Review(kube::Error::HttpError(error)))?;
    let answer = tokio::time::timeout(PATIENCE, client.request_text(request)).await;
    let answer = answer.map_err(|_| AskError::Late)?.map_err(AskError::Review)?;
    let mut answer: Value =
        serde_json::from_str(&answer).map_err(|error| AskError::Review(kube::Error::SerdeError(error)))?;
    Ok(take(&mut answer, "status"))
}

/// Takes a field, or null.
fn take(of: &mut Value, field: &str) -> Value {
    of.get_mut(field).map(Value::take).unwrap_or_default()
}

fn unauthorized() -> Response {
    text(StatusCode::UNAUTHORIZED, "Unauthorized\n")
}

/// The bearer token of the `Authorization` header.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, rest) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.trim().split_once(' ')?;
    // Like Go, which takes the token up to the next space.
    let token = rest.split(' ').next()?;
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

fn digest(bytes: &[u8]) -> Digest {
    let rustls::SupportedCipherSuite::Tls13(suite) =
        rustls::crypto::ring::cipher_suite::TLS13_AES_256_GCM_SHA384
    else {
        unreachable!("this is a TLS 1.3 suite")
    };
    suite.common.hash_provider.hash(bytes).as_ref().to_vec()
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A cache with expiry. The time is passed in.
struct Remembered<K, V>(BTreeMap<K, (V, Instant)>);

impl<K, V> Default for Remembered<K, V> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Ord + Clone, V: Clone> Remembered<K, V> {
    fn get(&mut self, key: &K, now: Instant) -> Option<V> {
        let (value, until) = self.0.get(key)?;
        if *until <= now {
            self.0.remove(key);
            return None;
        }
        Some(value.clone())
    }

    fn put(&mut self, key: K, value: V, keep: Duration, now: Instant) {
        if self.0.len() >= CAPACITY {
            self.0.retain(|_, (_, until)| *until > now);
        }
        if self.0.len() >= CAPACITY {
            let first = self.0.iter().min_by_key(|(_, (_, until))| *until).map(|(key, _)| key.clone());
            if let Some(first) = first {
                self.0.remove(&first);
            }
        }
        self.0.insert(key, (value, now + keep));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_cached_result_expires() {
        let start = Instant::now();
        let mut known = Remembered::default();
        known.put("a", true, DENIED, start);
        assert_eq!(known.get(&"a", start + DENIED - Duration::from_nanos(1)), Some(true));
        assert_eq!(known.get(&"a", start + DENIED), None);
        assert!(known.0.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_full_cache_drops_expired_entries_then_the_next_to_expire() {
        let start = Instant::now();
        let mut known = Remembered::default();
        for n in 0..CAPACITY {
            known.put(n, (), if n == 7 { DENIED } else { ALLOWED }, start);
        }
        known.put(CAPACITY, (), ALLOWED, start);
        assert_eq!(known.0.len(), CAPACITY);
        assert_eq!(known.get(&7, start), None);
        known.put(CAPACITY + 1, (), ALLOWED, start + ALLOWED);
        assert_eq!(known.0.len(), 1);
    }

    #[test]
    fn a_token_is_parsed_like_in_go() {
        let read = |value: &str| {
            let headers = HeaderMap::from_iter([(header::AUTHORIZATION, value.parse().unwrap())]);
            bearer(&headers).map(str::to_owned)
        };
        assert_eq!(read("Bearer abc").as_deref(), Some("abc"));
        assert_eq!(read(" bearer abc def").as_deref(), Some("abc"));
        for nothing in ["Bearer", "Bearer ", "Bearer  abc", "Basic abc", ""] {
            assert_eq!(read(nothing), None, "{nothing:?}");
        }
    }
}
