//! Who may read the metrics: whom the API server knows and allows.
//!
//! A bearer token is shown to the API server (TokenReview), and its owner's right to the path is asked for
//! (SubjectAccessReview). The operator needs the role `system:auth-delegator`, the scraper a role with the
//! `nonResourceURLs` of the page. Answers are kept for as long as kube-apiserver's delegates keep them, so that a
//! scrape every few seconds costs no request. No answer of the API server that failed is kept, and without an answer
//! nobody passes.
//!
//! Reviews are written and read as plain JSON: of each four fields are of interest, and the types would be a hundred
//! kilobytes of every operator.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::{HeaderMap, Method, StatusCode, header};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::serve::{Response, text};

/// How long a token's owner, or that it has none, is remembered.
const TOKEN: Duration = Duration::from_mins(1);
/// How long a permission is remembered.
const ALLOWED: Duration = Duration::from_mins(5);
/// How long a refusal is remembered.
const DENIED: Duration = Duration::from_secs(30);
/// How long the API server may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// How many answers of each kind are kept. Those who guess tokens must not fill the memory.
const CAPACITY: usize = 1024;

/// A token's digest: tokens themselves are not kept.
type Digest = Vec<u8>;

/// Lets those pass who have a token that the API server knows, and the right to the path. Cheap to clone.
#[derive(Clone)]
pub struct Guard {
    client: kube::Client,
    /// Whose tokens these are, as the API server describes users.
    tokens: Arc<Mutex<Remembered<Digest, Option<Value>>>>,
    access: Arc<Mutex<Remembered<String, bool>>>,
}

impl Guard {
    /// Asks with this client, which must be allowed to create TokenReviews and SubjectAccessReviews.
    pub fn new(client: kube::Client) -> Self {
        Self { client, tokens: Arc::default(), access: Arc::default() }
    }

    /// May this request be answered? If not, what to answer instead: 401 without a good token, 403 without the
    /// right, 500 if the API server cannot be asked.
    ///
    /// Where controller-runtime answers 500 to a token that nobody knows, this is 401: the fault is the client's.
    pub async fn check(&self, method: &Method, path: &str, headers: &HeaderMap) -> Result<(), Response> {
        let Some(token) = bearer(headers) else { return Err(unauthorized()) };
        let user = match self.user(token).await {
            Ok(Some(user)) => user,
            Ok(None) => return Err(unauthorized()),
            Err(error) => {
                let error: &dyn std::error::Error = &error;
                tracing::error!(error, "authentication of a metrics request failed");
                return Err(text(StatusCode::INTERNAL_SERVER_ERROR, "Authentication failed\n"));
            }
        };
        let name = user["username"].as_str().unwrap_or_default();
        match self.allowed(&user, method, path).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(text(StatusCode::FORBIDDEN, format!("Authorization denied for user {name}\n"))),
            Err(error) => {
                let error: &dyn std::error::Error = &error;
                tracing::error!(error, user = name, "authorization of a metrics request failed");
                let body = format!("Authorization for user {name} failed\n");
                Err(text(StatusCode::INTERNAL_SERVER_ERROR, body))
            }
        }
    }

    /// Whose token this is, if anyone's.
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

/// The API server could not be asked.
#[derive(Debug, thiserror::Error)]
enum AskError {
    #[error("the API server did not answer a review within {PATIENCE:?}")]
    Late,
    #[error("the API server refused a review; the operator needs the cluster role system:auth-delegator")]
    Review(#[source] kube::Error),
}

/// The status of a review of this spec.
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

/// A field, or null.
fn take(of: &mut Value, field: &str) -> Value {
    of.get_mut(field).map(Value::take).unwrap_or_default()
}

fn unauthorized() -> Response {
    text(StatusCode::UNAUTHORIZED, "Unauthorized\n")
}

/// The token of an `Authorization` header.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, rest) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.trim().split_once(' ')?;
    // Go takes the token up to the next space.
    let token = rest.split(' ').next()?;
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

fn digest(bytes: &[u8]) -> Digest {
    let rustls::SupportedCipherSuite::Tls13(suite) =
        rustls::crypto::ring::cipher_suite::TLS13_AES_256_GCM_SHA384
    else {
        unreachable!("a TLS 1.3 suite is one")
    };
    suite.common.hash_provider.hash(bytes).as_ref().to_vec()
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Answers, each until its time. Knows no clock: the time is passed in.
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
    async fn an_answer_is_forgotten_at_its_time() {
        let start = Instant::now();
        let mut known = Remembered::default();
        known.put("a", true, DENIED, start);
        assert_eq!(known.get(&"a", start + DENIED - Duration::from_nanos(1)), Some(true));
        assert_eq!(known.get(&"a", start + DENIED), None);
        assert!(known.0.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_full_memory_forgets_the_old_then_what_ends_first() {
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
    fn a_token_is_read_as_go_reads_it() {
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
