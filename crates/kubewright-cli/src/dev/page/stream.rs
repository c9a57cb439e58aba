//! The stream of server-sent events: the full state, then changes at a limited rate.
//!
//! A stream is only a position on the board. The position is the event `id`, which the browser sends when it
//! reconnects.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http_body_util::StreamBody;
use hyper::body::Frame;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::{Instant, sleep_until, timeout};

use super::state::Shared;

/// Entries per message, so that the browser can render in between.
const ENTRIES: usize = 500;
/// Minimum time between two messages.
const PACE: Duration = Duration::from_millis(50);
/// Keep-alive interval.
const ALIVE: Duration = Duration::from_secs(15);

struct Reader {
    shared: Arc<Shared>,
    changes: watch::Receiver<u64>,
    position: u64,
    not_before: Instant,
    /// Limits the number of streams.
    _place: OwnedSemaphorePermit,
}

/// The response body, starting at the browser's last position.
pub(super) fn body(
    shared: Arc<Shared>,
    last: Option<&str>,
    place: OwnedSemaphorePermit,
) -> impl hyper::body::Body<Data = Bytes, Error = Infallible> + Send + 'static {
    let position = last.and_then(|id| shared.position(id)).unwrap_or(0);
    let reader =
        Reader { changes: shared.changes(), shared, position, not_before: Instant::now(), _place: place };
    StreamBody::new(stream::unfold(reader, |mut reader| async {
        let message = reader.next().await;
        Some((Ok(Frame::data(Bytes::from(message))), reader))
    }))
}

impl Reader {
    async fn next(&mut self) -> String {
        loop {
            sleep_until(self.not_before).await;
            self.changes.mark_unchanged();
            if let Some(batch) = self.shared.read(|state| state.board.after(self.position, ENTRIES)) {
                self.position = batch.position;
                if !batch.more {
                    self.not_before = Instant::now() + PACE;
                }
                return format!("id: {}-{}\ndata: {}\n\n", self.shared.epoch(), batch.position, batch.text);
            }
            if timeout(ALIVE, self.changes.changed()).await.is_err() {
                return ":\n\n".to_owned();
            }
        }
    }
}
