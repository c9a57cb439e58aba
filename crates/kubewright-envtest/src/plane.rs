//! The control planes of an environment.
//!
//! Owns how each is started, and its clock.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use kubewright_apiserver::clock::TokioClock;
use kubewright_apiserver::serve::Listening;
use kubewright_apiserver::{ApiServer, Options};
use tempfile::TempDir;

use crate::assets::Assets;
use crate::environment::StartError;
use crate::faults::Target;
use crate::webhooks::existing::Session;

/// The start time of a seeded environment: 2026-01-01T00:00:00Z, in microseconds.
const SEEDED_START: i64 = 1_767_225_600_000_000;

/// One control plane.
pub(crate) enum Plane {
    Embedded { server: ApiServer, clock: TokioClock, listening: Option<Box<(Listening, TempDir)>> },
    Assets(Box<Assets>),
    Existing(Arc<Session>),
}

impl Plane {
    pub(crate) async fn embedded(
        options: Options,
        seed: Option<u64>,
        https: bool,
    ) -> Result<(Self, Target), StartError> {
        let start = if seed.is_some() { SEEDED_START } else { now_micros() };
        // Tokio's clock is the real clock unless a test pauses it.
        let clock = TokioClock::starting_at(start);
        let server = ApiServer::new(Options { clock: Arc::new(clock), seed, ..options });
        let listening = if https {
            let listening = Listening::open(server.clone(), 0).await?;
            let folder =
                tempfile::Builder::new().prefix("kubewright-").tempdir().map_err(StartError::Kubeconfig)?;
            std::fs::write(folder.path().join("kubeconfig"), listening.kubeconfig())
                .map_err(StartError::Kubeconfig)?;
            Some(Box::new((listening, folder)))
        } else {
            None
        };
        let target = Target::Embedded(server.clone());
        Ok((Self::Embedded { server, clock, listening }, target))
    }
}

impl Plane {
    /// The clock for controllers on this control plane.
    pub(crate) fn clock(&self) -> Arc<dyn kubewright_runtime::Clock> {
        match self {
            Self::Embedded { clock, .. } => Arc::new(ServerClock(*clock)),
            Self::Assets(_) | Self::Existing(_) => Arc::new(kubewright_runtime::SystemClock),
        }
    }

    /// The CA certificate of the API server in PEM, if it is known.
    #[cfg(feature = "cluster")]
    pub(crate) fn authority(&self) -> Option<&str> {
        match self {
            Self::Embedded { listening, .. } => listening.as_ref().map(|it| it.0.authority().pem()),
            Self::Assets(assets) => Some(assets.authority().pem()),
            Self::Existing(_) => None,
        }
    }
}

fn now_micros() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

/// The clock of the server, for managers.
struct ServerClock(TokioClock);

impl kubewright_runtime::Clock for ServerClock {
    fn now(&self) -> jiff::Timestamp {
        let micros = kubewright_apiserver::clock::Clock::now_micros(&self.0);
        jiff::Timestamp::from_microsecond(micros).unwrap_or(jiff::Timestamp::MAX)
    }
}
