//! Accepts connections, and pauses after errors.

use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, sleep_until};

const MIN_PAUSE: Duration = Duration::from_millis(5);
const MAX_PAUSE: Duration = Duration::from_secs(1);

/// The connections to a listener.
pub(super) struct Connections {
    listener: TcpListener,
    pause: Duration,
    /// The end of a pause.
    resumes: Option<Instant>,
}

impl Connections {
    pub(super) fn new(listener: TcpListener) -> Self {
        Self { listener, pause: MIN_PAUSE, resumes: None }
    }

    /// The next connection. Without file descriptors, accepting fails at once and repeatedly. Cancel-safe.
    pub(super) async fn next(&mut self) -> TcpStream {
        loop {
            if let Some(resumes) = self.resumes {
                sleep_until(resumes).await;
                self.resumes = None;
            }
            if let Ok((stream, _)) = self.listener.accept().await {
                self.pause = MIN_PAUSE;
                return stream;
            }
            self.resumes = Some(Instant::now() + self.pause);
            self.pause = (self.pause * 2).min(MAX_PAUSE);
        }
    }
}
