//! Trying again when somebody else was faster.

use std::time::Duration;

use super::{Client, Error};
use crate::{Key, Object};

/// How often, and after which pauses.
#[derive(Debug, Clone, Copy)]
pub struct Retry {
    /// How often at most.
    pub tries: u32,
    /// The first pause.
    pub pause: Duration,
    /// How much longer each pause is than the one before.
    pub factor: f64,
}

impl Default for Retry {
    /// Five tries, 10 ms apart: enough where writers are few.
    fn default() -> Self {
        Self { tries: 5, pause: Duration::from_millis(10), factor: 1.0 }
    }
}

impl Retry {
    /// Four tries with pauses that grow fivefold, for objects with many writers.
    pub fn growing() -> Self {
        Self { tries: 4, pause: Duration::from_millis(10), factor: 5.0 }
    }

    /// Runs `attempt` until it is no conflict any more.
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

/// Runs `attempt`, which reads, changes and writes an object, until nobody else was faster; five times at most.
pub async fn retry_on_conflict<T>(attempt: impl AsyncFnMut() -> Result<T, Error>) -> Result<T, Error> {
    Retry::default().on_conflict(attempt).await
}

impl Client {
    /// Reads an object from the server, changes it and writes it back, again if somebody else was faster.
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
