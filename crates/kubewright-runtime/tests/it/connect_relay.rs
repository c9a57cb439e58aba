//! A TCP relay between client and server that can go silent, like a broken network: sockets stay open, nothing arrives.

use std::net::SocketAddr;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// The counters of the relay.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Connections that clients opened.
    pub(crate) accepted: usize,
    /// Connections that are still open.
    pub(crate) open: usize,
    /// Reads from clients.
    pub(crate) asked: usize,
    /// Open connections that no longer forward anything.
    pub(crate) silenced: usize,
}

/// A relay. Dropping it closes it.
pub(crate) struct Relay {
    address: SocketAddr,
    silent: watch::Sender<bool>,
    seen: watch::Receiver<Seen>,
    _task: JoinSet<()>,
}

impl Relay {
    pub(crate) async fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let address = listener.local_addr().expect("the port is known");
        let (silent, is_silent) = watch::channel(false);
        let (tell, seen) = watch::channel(Seen::default());
        let mut task = JoinSet::new();
        task.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                tell.send_modify(|seen| {
                    seen.accepted += 1;
                    seen.open += 1;
                });
                let (silent, tell) = (is_silent.clone(), tell.clone());
                connections.spawn(async move {
                    if let Ok(server) = TcpStream::connect(server).await {
                        relay(client, server, silent, &tell).await;
                    }
                    tell.send_modify(|seen| seen.open -= 1);
                });
            }
        });
        Self { address, silent, seen, _task: task }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops forwarding on the existing connections, without closing them.
    pub(crate) fn fall_silent(&self) {
        self.silent.send_replace(true);
    }

    /// Lets new connections work again. Silenced ones stay silent.
    pub(crate) fn speak(&self) {
        self.silent.send_replace(false);
    }

    pub(crate) fn seen(&self) -> Seen {
        *self.seen.borrow()
    }

    /// Waits until the counters satisfy a condition.
    pub(crate) async fn until(&self, seen: impl FnMut(&Seen) -> bool) -> Seen {
        *self.seen.clone().wait_for(seen).await.expect("the relay runs")
    }
}

async fn relay(
    mut client: TcpStream,
    mut server: TcpStream,
    mut silent: watch::Receiver<bool>,
    seen: &watch::Sender<Seen>,
) {
    let (mut from_client, mut to_client) = client.split();
    let (mut from_server, mut to_server) = server.split();
    // When one direction ends, close the other.
    tokio::select! {
        biased;
        _ = async { silent.wait_for(|silent| *silent).await.is_ok() } => {
            seen.send_modify(|seen| seen.silenced += 1);
            std::future::pending::<()>().await;
        }
        () = carry(&mut from_client, &mut to_server, || seen.send_modify(|seen| seen.asked += 1)) => {}
        () = carry(&mut from_server, &mut to_client, || {}) => {}
    }
}

async fn carry(from: &mut (impl AsyncRead + Unpin), to: &mut (impl AsyncWrite + Unpin), passed: impl Fn()) {
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        passed();
        if to.write_all(&buffer[..length]).await.is_err() {
            return;
        }
    }
}
