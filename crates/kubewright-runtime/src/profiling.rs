//! The endpoints of `--pprof-bind-address`: CPU profiles and memory statistics of the process.
//!
//! The paths are those of Go's `net/http/pprof`, where supported:
//!
//! | path | |
//! |---|---|
//! | `/debug/pprof/` | index |
//! | `/debug/pprof/profile?seconds=N` | CPU profile in pprof's format; needs the cargo feature `profiling` |
//! | `/debug/pprof/cmdline` | the command line, with NUL bytes between arguments |
//! | `/debug/memory` | memory of the process and of the caches, as text |
//!
//! There is no `/debug/pprof/heap`: a heap profile needs a sampling allocator, which is the program's choice. The path
//! returns 501 and refers to `/debug/memory`.
//!
//! Nothing is measured between requests. There is no authentication: bind the server to 127.0.0.1.

#[cfg(all(feature = "profiling", unix))]
mod cpu;
mod memory;

use std::sync::Arc;

use http::StatusCode;

use crate::Cache;
use crate::serve::{Handler, Request, Response, text};

const INDEX: &str = "/debug/pprof/
Profiles of this process. Read a CPU profile with:

  go tool pprof http://ADDRESS/debug/pprof/profile?seconds=30

/debug/pprof/profile?seconds=30   CPU profile in pprof's format
/debug/pprof/cmdline              the command line of the process
/debug/memory                     memory of the process and of the caches
";

/// Serves the pprof endpoints. `caches` are listed by name in the memory statistics.
pub(crate) fn handler(caches: impl Fn() -> Vec<(String, Cache)> + Send + Sync + 'static) -> Handler {
    let caches = Arc::new(caches);
    let index = Handler::new(|_| async { text(StatusCode::OK, INDEX) });
    Handler::paths([
        ("/debug/pprof", index.clone()),
        ("/debug/pprof/", index),
        ("/debug/pprof/profile", Handler::new(profile)),
        ("/debug/pprof/cmdline", Handler::new(|_| async { text(StatusCode::OK, command_line()) })),
        ("/debug/pprof/heap", Handler::new(|_| async { no_heap_profile() })),
        ("/debug/pprof/allocs", Handler::new(|_| async { no_heap_profile() })),
        (
            "/debug/memory",
            Handler::new(move |_| {
                let report = memory::report(&caches());
                async move { text(StatusCode::OK, report) }
            }),
        ),
    ])
}

fn no_heap_profile() -> Response {
    let why = "heap profiles are not supported: the allocator does not sample allocations; \
               see /debug/memory for the memory of the process and of the caches\n";
    text(StatusCode::NOT_IMPLEMENTED, why)
}

fn command_line() -> Vec<u8> {
    let arguments: Vec<Vec<u8>> = std::env::args_os().map(std::ffi::OsString::into_encoded_bytes).collect();
    arguments.join(&0)
}

/// The default and the maximum duration of a profile, in seconds.
const SECONDS: u64 = 30;
const MOST_SECONDS: u64 = 600;

/// The parameter `seconds`.
fn seconds(query: &str) -> Result<u64, String> {
    let given = query.split('&').find_map(|it| it.strip_prefix("seconds="));
    let seconds = given.map_or(Ok(SECONDS), str::parse::<u64>);
    match seconds {
        Ok(seconds) if (1..=MOST_SECONDS).contains(&seconds) => Ok(seconds),
        _ => Err(format!("seconds must be a number from 1 to {MOST_SECONDS}\n")),
    }
}

async fn profile(request: Request) -> Response {
    match seconds(request.uri().query().unwrap_or_default()) {
        Ok(seconds) => cpu_profile(seconds).await,
        Err(wrong) => text(StatusCode::BAD_REQUEST, wrong),
    }
}

#[cfg(all(feature = "profiling", unix))]
async fn cpu_profile(seconds: u64) -> Response {
    match cpu::profile(std::time::Duration::from_secs(seconds)).await {
        Ok(profile) => {
            let mut response = text(StatusCode::OK, profile);
            let headers = response.headers_mut();
            let octets = http::HeaderValue::from_static("application/octet-stream");
            headers.insert(http::header::CONTENT_TYPE, octets);
            let name = http::HeaderValue::from_static("attachment; filename=\"profile\"");
            headers.insert(http::header::CONTENT_DISPOSITION, name);
            response
        }
        Err(error @ cpu::ProfileError::Busy) => text(StatusCode::CONFLICT, format!("{error}\n")),
        Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, format!("{}\n", crate::error::Chain(&error))),
    }
}

#[cfg(not(all(feature = "profiling", unix)))]
#[expect(clippy::unused_async, reason = "the same signature with and without the feature")]
async fn cpu_profile(_seconds: u64) -> Response {
    let why = "CPU profiles are not compiled in: enable the cargo feature `profiling` of kubewright\n";
    text(StatusCode::NOT_IMPLEMENTED, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_duration_of_a_profile_is_bounded() {
        assert_eq!(seconds(""), Ok(30));
        assert_eq!(seconds("debug=1&seconds=5"), Ok(5));
        for wrong in ["seconds=0", "seconds=-1", "seconds=601", "seconds=x", "seconds="] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}
