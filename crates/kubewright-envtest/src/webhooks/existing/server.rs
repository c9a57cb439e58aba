//! The webhook server of a session.
//!
//! It has a thread and a runtime of its own. The environments of other tests can have their objects converted by it, so
//! it must answer while its environment is dropped on the only thread of a test, and for a while after: API servers see
//! the change of a CRD late.

use std::net::SocketAddr;
use std::time::Duration;

use kubewright_runtime::webhook::Webhooks;
use tokio::sync::oneshot;
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::dispatcher;

use crate::webhooks::{WebhookError, bind, handler};

/// How long the server answers after its session has ended.
const LINGER: Duration = Duration::from_secs(2);

/// A running server. Dropping it stops it after [`LINGER`], without waiting.
pub(super) struct WebhookServer {
    pub(super) address: SocketAddr,
    /// The CA of its certificate.
    pub(super) ca: String,
    _stop: DropGuard,
}

impl WebhookServer {
    /// Starts a server with a certificate for `name`.
    pub(super) async fn start(
        listen: &'static str,
        name: String,
        webhooks: &Webhooks,
    ) -> Result<Self, WebhookError> {
        let (started, is_started) = oneshot::channel();
        let (stop, handler) = (CancellationToken::new(), handler(webhooks));
        let stopped = stop.clone();
        // Log lines of handlers go where those of this thread go.
        let dispatch = dispatcher::get_default(Clone::clone);
        let serve = move || {
            let _dispatch = dispatcher::set_default(&dispatch);
            let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => runtime,
                Err(error) => return drop(started.send(Err(WebhookError::Thread(error)))),
            };
            runtime.block_on(async {
                let (server, ca) = match bind(listen, &[name]).await {
                    Ok(bound) => bound,
                    Err(error) => return drop(started.send(Err(error))),
                };
                let _ = started.send(Ok((server.address(), ca)));
                let stop = async {
                    stopped.cancelled().await;
                    tokio::time::sleep(LINGER).await;
                };
                server.with_drain(LINGER).run(handler, stop).await;
            });
        };
        let thread = std::thread::Builder::new().name("kubewright-envtest-webhooks".to_owned());
        thread.spawn(serve).map_err(WebhookError::Thread)?;
        let (address, ca) = is_started.await.expect("the thread sends a result")?;
        Ok(Self { address, ca, _stop: stop.drop_guard() })
    }
}
