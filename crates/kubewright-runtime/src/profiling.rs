//! The endpoints of `--pprof-bind-address`: CPU profiles and memory statistics of the process.
//!
//! The paths are those of Go's `net/http/pprof`, where supported:
//!
//! | path | |
//! |---|---|
//! | `/debug/pprof/` | index |
//! | `/debug/pprof/profile?seconds=N` | CPU profile in pprof's format; needs the cargo feature `profiling` |
//! | `/debug/pprof/heap` | heap profile of the program's allocator; needs [`Manager::heap_profiles`] |
//! | `/debug/pprof/cmdline` | the command line, with NUL bytes between arguments |
//! | `/debug/memory` | memory of the process and of the caches, as text |
//!
//! A heap profile needs an allocator that samples allocations, which only the program can install. Without one, the path
//! returns 501 and refers to [`Manager::heap_profiles`].
//!
//! [`Manager::heap_profiles`]: crate::Manager::heap_profiles
//!
//! Nothing is measured between requests. There is no authentication: bind the server to 127.0.0.1.

#[cfg(all(feature = "profiling", unix))]
mod cpu;
mod memory;

use std::error::Error;
use std::sync::Arc;

use http::{HeaderValue, StatusCode, header};

use crate::cache::Caches;
use crate::serve::{Handler, Request, Response, text};

const INDEX: &str = "/debug/pprof/
Profiles of this process. Read a CPU profile with:

  go tool pprof http://ADDRESS/debug/pprof/profile?seconds=30

/debug/pprof/profile?seconds=30   CPU profile in pprof's format
/debug/pprof/heap                 heap profile of the program's allocator
/debug/pprof/cmdline              the command line of the process
/debug/memory                     memory of the process and of the caches
";

/// Takes a heap profile.
pub(crate) type HeapProfile = Arc<dyn Fn() -> Result<Vec<u8>, Box<dyn Error + Send + Sync>> + Send + Sync>;

/// Serves the pprof endpoints. The memory statistics list the caches.
pub(crate) fn handler(caches: Caches, heap: Option<HeapProfile>) -> Handler {
    let heap = Handler::new(move |_| heap_profile(heap.clone()));
    let index = Handler::new(|_| async { text(StatusCode::OK, INDEX) });
    Handler::paths([
        ("/debug/pprof", index.clone()),
        ("/debug/pprof/", index),
        ("/debug/pprof/profile", Handler::new(profile)),
        ("/debug/pprof/cmdline", Handler::new(|_| async { text(StatusCode::OK, command_line()) })),
        ("/debug/pprof/heap", heap.clone()),
        ("/debug/pprof/allocs", heap),
        (
            "/debug/memory",
            Handler::new(move |_| {
                let report = memory::report(&caches.all());
                async move { text(StatusCode::OK, report) }
            }),
        ),
    ])
}

async fn heap_profile(heap: Option<HeapProfile>) -> Response {
    let Some(heap) = heap else {
        let why = "no heap profiles: the system's allocator does not sample allocations; install one that does, and \
                   pass its profiles to Manager::heap_profiles; \
                   see /debug/memory for the memory of the process and of the caches\n";
        return text(StatusCode::NOT_IMPLEMENTED, why);
    };
    // Symbolization is slow and reads files.
    match tokio::task::spawn_blocking(move || heap()).await {
        Ok(Ok(profile)) => download(profile, "attachment; filename=\"heap\""),
        Ok(Err(error)) => {
            let why = format!("failed to take a heap profile: {}\n", crate::error::Chain(&*error));
            text(StatusCode::INTERNAL_SERVER_ERROR, why)
        }
        Err(_) => text(StatusCode::INTERNAL_SERVER_ERROR, "the heap profiler panicked\n"),
    }
}

/// A profile as a file.
fn download(profile: Vec<u8>, disposition: &'static str) -> Response {
    let mut response = text(StatusCode::OK, profile);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    headers.insert(header::CONTENT_DISPOSITION, HeaderValue::from_static(disposition));
    response
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
        Ok(profile) => download(profile, "attachment; filename=\"profile\""),
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
