//! Retries after conflicts.

use std::time::Duration;

use super::{Client, Error};
use crate::{Key, Object};

/// The number of attempts and their delays.
#[derive(Debug, Clone, Copy)]
pub struct Retry {
    /// The maximum number of attempts.
    pub tries: u32,
    /// The first delay.
    pub pause: Duration,
    /// The factor by which each delay grows.
    pub factor: f64,
}

impl Default for Retry {
    /// Five attempts, 10 ms apart, for objects with few writers.
    fn default() -> Self {
        Self { tries: 5, pause: Duration::from_millis(10), factor: 1.0 }
    }
}

impl Retry {
    /// Four attempts with delays that grow fivefold, for objects with many writers.
    pub fn growing() -> Self {
        Self { tries: 4, pause: Duration::from_millis(10), factor: 5.0 }
    }

    /// Runs `attempt` until it does not return a conflict.
    pub async fn on_conflict<T>(
        self,
        mut attempt: impl AsyncFnMut() -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut pause = self.pause;
        for _ in 1..self.tries {
            match attempt().await {
                Err(error) if error.is_conflict() => tokio::time::sleep(pause).await,
                done => return done,
            }
            pause = pause.mul_f64(self.factor);
        }
        attempt().await
    }
}

/// Runs `attempt`, which reads, changes and writes an object, until it does not conflict; at most five times.
pub async fn retry_on_conflict<T>(attempt: impl AsyncFnMut() -> Result<T, Error>) -> Result<T, Error> {
    Retry::default().on_conflict(attempt).await
}

impl Client {
    /// Reads an object from the server, changes it and writes it back. Retries on conflict.
    pub async fn modify<K: Object>(&self, key: &Key, mut change: impl FnMut(&mut K)) -> Result<K, Error> {
        let direct = self.uncached();
        retry_on_conflict(async || {
            let mut object = (*direct.get::<K>(key).await?).clone();
            change(&mut object);
            self.update(&object).await
        })
        .await
    }
}
