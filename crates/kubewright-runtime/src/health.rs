//! Liveness and readiness probes: `/healthz` and `/readyz`.
//!
//! [`Checks`] owns named checks. [`handler`] responds like kube-apiserver and controller-runtime: `ok`, the list of
//! checks with `?verbose` or on failure, `?exclude=NAME`, and each check under its own path. The invariant: there is
//! always a check named `ping`, so the list is never empty. The reason of a failure is in the log and under the check's
//! own path, not in the list.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write as _};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, join_all};
use http::StatusCode;
use percent_encoding::percent_decode_str;

use crate::serve::{Handler, Response, not_found, text};

/// Returns the reason if the check fails.
type Check = Arc<dyn Fn() -> BoxFuture<'static, Result<(), String>> + Send + Sync>;

/// Named checks. Clones share them, and checks can be added while the server runs.
///
/// ```
/// use kubewright_runtime::health::Checks;
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let ready = Checks::new("readyz");
/// ready.add("cache-sync", || Err("12 of 20 kinds are listed".to_owned()));
/// let answer = ready.answer("", None).await;
/// assert_eq!(answer.status(), 500);
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone)]
pub struct Checks {
    endpoint: &'static str,
    checks: Arc<Mutex<BTreeMap<String, Check>>>,
}

impl Checks {
    /// The checks of an endpoint, `healthz` or `readyz`, initially with `ping`.
    pub fn new(endpoint: &'static str) -> Self {
        let made = Self { endpoint, checks: Arc::default() };
        made.add("ping", || Ok(()));
        made
    }

    /// Adds a check, or replaces the one of that name. It runs on each probe and must not block.
    pub fn add<C>(&self, name: impl Into<String>, check: C)
    where
        C: Fn() -> Result<(), String> + Send + Sync + 'static,
    {
        self.insert(name.into(), Arc::new(move || std::future::ready(check()).boxed()));
    }

    /// Like [`Checks::add`], for an async check. The default probe timeout of the kubelet is one second.
    pub fn add_async<C, F>(&self, name: impl Into<String>, check: C)
    where
        C: Fn() -> F + Send + Sync + 'static,
        F: Future<Output = Result<(), String>> + Send + 'static,
    {
        self.insert(name.into(), Arc::new(move || check().boxed()));
    }

    /// Removes a check.
    pub fn remove(&self, name: &str) {
        self.checks.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
    }

    fn insert(&self, name: String, check: Check) {
        self.checks.lock().unwrap_or_else(PoisonError::into_inner).insert(name, check);
    }

    /// A copy of the checks, so that they do not run under the lock.
    fn snapshot(&self) -> BTreeMap<String, Check> {
        self.checks.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Responds for one check, or for all checks if `name` is empty.
    pub async fn answer(&self, name: &str, query: Option<&str>) -> Response {
        if name.is_empty() {
            return self.all(&ProbeQuery::read(query.unwrap_or_default())).await;
        }
        let Some(check) = self.snapshot().remove(name) else { return not_found() };
        match check().await {
            Ok(()) => text(StatusCode::OK, "ok"),
            Err(reason) => {
                text(StatusCode::INTERNAL_SERVER_ERROR, format!("internal server error: {reason}\n"))
            }
        }
    }

    async fn all(&self, query: &ProbeQuery) -> Response {
        let checks = self.snapshot();
        let results = join_all(checks.iter().map(async |(name, check)| {
            if query.exclude.contains(name) {
                return (name, None);
            }
            (name, Some(check().await))
        }))
        .await;
        let (status, body, failures) = report(self.endpoint, query, &results);
        if !failures.is_empty() {
            tracing::info!(failures, "{} check failed", self.endpoint);
        }
        text(status, body)
    }
}

impl fmt::Debug for Checks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Checks").field(&self.snapshot().keys()).finish()
    }
}

/// Serves `/healthz` and `/readyz`, and the path of each check below them.
pub fn handler(healthz: Checks, readyz: Checks) -> Handler {
    Handler::new(move |request| {
        let (healthz, readyz) = (healthz.clone(), readyz.clone());
        async move {
            let path = request.uri().path().trim_matches('/');
            let (endpoint, name) = path.split_once('/').unwrap_or((path, ""));
            match endpoint {
                "healthz" => healthz.answer(name, request.uri().query()).await,
                "readyz" => readyz.answer(name, request.uri().query()).await,
                _ => not_found(),
            }
        }
    })
}

/// The query parameters of a probe.
#[derive(Debug, Default, PartialEq, Eq)]
struct ProbeQuery {
    verbose: bool,
    exclude: BTreeSet<String>,
}

impl ProbeQuery {
    fn read(query: &str) -> Self {
        let mut parsed = Self::default();
        for pair in query.split('&') {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            match key {
                "verbose" => parsed.verbose = true,
                "exclude" => {
                    parsed.exclude.insert(unescape(value));
                }
                _ => {}
            }
        }
        parsed
    }
}

/// Decodes a query value. Invalid escapes are kept.
fn unescape(value: &str) -> String {
    percent_decode_str(&value.replace('+', " ")).decode_utf8_lossy().into_owned()
}

/// The status, the body and the failures for the log. A check without a result was excluded.
fn report(
    endpoint: &str,
    query: &ProbeQuery,
    results: &[(&String, Option<Result<(), String>>)],
) -> (StatusCode, String, String) {
    let (mut list, mut failures) = (String::new(), String::new());
    for (name, result) in results {
        // Writing to a String cannot fail.
        let _ = match result {
            None => writeln!(list, "[+]{name} excluded: ok"),
            Some(Ok(())) => writeln!(list, "[+]{name} ok"),
            Some(Err(reason)) => {
                let separator = if failures.is_empty() { "" } else { "; " };
                let _ = write!(failures, "{separator}{name}: {reason}");
                writeln!(list, "[-]{name} failed: reason withheld")
            }
        };
    }
    let unknown: Vec<String> = query
        .exclude
        .iter()
        .filter(|excluded| results.iter().all(|(name, _)| name != excluded))
        .map(|excluded| format!("{excluded:?}"))
        .collect();
    if !unknown.is_empty() {
        let _ = writeln!(
            list,
            "warn: some health checks cannot be excluded: no matches for {}",
            unknown.join(",")
        );
    }
    if !failures.is_empty() {
        return (StatusCode::INTERNAL_SERVER_ERROR, format!("{list}{endpoint} check failed\n"), failures);
    }
    let body = if query.verbose { format!("{list}{endpoint} check passed\n") } else { "ok".to_owned() };
    (StatusCode::OK, body, failures)
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;

    async fn seen(checks: &Checks, name: &str, query: &str) -> (u16, String) {
        let answer = checks.answer(name, Some(query)).await;
        let headers = answer.headers();
        assert_eq!(headers["content-type"], "text/plain; charset=utf-8");
        assert_eq!(headers["x-content-type-options"], "nosniff");
        let status = answer.status().as_u16();
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn passing_checks_are_ok_and_listed_with_verbose() {
        let checks = Checks::new("healthz");
        assert_eq!(seen(&checks, "", "").await, (200, "ok".to_owned()));
        checks.add_async("later", async || Ok(()));
        assert_eq!(
            seen(&checks, "", "verbose").await,
            (200, "[+]later ok\n[+]ping ok\nhealthz check passed\n".to_owned())
        );
        assert_eq!(seen(&checks, "ping", "").await, (200, "ok".to_owned()));
        assert_eq!(seen(&checks, "nobody", "").await, (404, "404 page not found\n".to_owned()));
    }

    #[tokio::test]
    async fn the_reason_of_a_failing_check_is_shown_only_under_its_own_path() {
        let checks = Checks::new("readyz");
        checks.add("cache", || Err("not listed yet".to_owned()));
        assert_eq!(
            seen(&checks, "", "").await,
            (500, "[-]cache failed: reason withheld\n[+]ping ok\nreadyz check failed\n".to_owned())
        );
        assert_eq!(
            seen(&checks, "cache", "").await,
            (500, "internal server error: not listed yet\n".to_owned())
        );
    }

    #[tokio::test]
    async fn excluded_checks_do_not_run_and_unknown_ones_cause_a_warning() {
        let checks = Checks::new("readyz");
        checks.add("a check", || panic!("this one is excluded"));
        assert_eq!(seen(&checks, "", "exclude=a%20check").await, (200, "ok".to_owned()));
        assert_eq!(
            seen(&checks, "", "exclude=a+check&exclude=b&exclude=c&verbose=1").await,
            (
                200,
                "[+]a check excluded: ok\n[+]ping ok\nwarn: some health checks cannot be excluded: no matches \
                 for \"b\",\"c\"\nreadyz check passed\n"
                    .to_owned()
            )
        );
    }

    #[tokio::test]
    async fn clones_see_checks_that_are_added_and_replaced_later() {
        let checks = Checks::new("readyz");
        let held = checks.clone();
        checks.add("state", || Err("starting".to_owned()));
        assert_eq!(seen(&held, "", "").await.0, 500);
        checks.add("state", || Ok(()));
        assert_eq!(seen(&held, "", "").await.0, 200);
    }

    #[test]
    fn a_query_is_decoded_as_a_form() {
        assert_eq!(unescape("a%2Fb+c%zz%4"), "a/b c%zz%4");
        assert_eq!(ProbeQuery::read("verbose"), ProbeQuery { verbose: true, exclude: BTreeSet::new() });
        assert_eq!(ProbeQuery::read(""), ProbeQuery::default());
    }
}
