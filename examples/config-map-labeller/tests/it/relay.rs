//! A TCP relay between operator and server that can hold back the operator's requests.

use std::net::SocketAddr;

use anyhow::Result;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// A relay that stops on drop.
pub(crate) struct Relay {
    pub(crate) address: SocketAddr,
    held: watch::Sender<bool>,
    _tasks: JoinSet<()>,
}

impl Relay {
    pub(crate) async fn to(server: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let (held, is_held) = watch::channel(false);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                let held = is_held.clone();
                // Connection errors are handled by client and server.
                connections.spawn(async move { drop(pass(client, server, held).await) });
            }
        });
        Ok(Self { address, held, _tasks: tasks })
    }

    /// Stops forwarding to the server. Responses of the server still arrive.
    pub(crate) fn hold(&self) {
        self.held.send_replace(true);
    }
}

async fn pass(client: TcpStream, server: SocketAddr, mut held: watch::Receiver<bool>) -> Result<()> {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = TcpStream::connect(server).await?.into_split();
    let ask = async {
        let mut bytes = vec![0; 1 << 16];
        loop {
            let read = from_client.read(&mut bytes).await?;
            if read == 0 {
                return anyhow::Ok(());
            }
            held.wait_for(|held| !held).await?;
            to_server.write_all(&bytes[..read]).await?;
        }
    };
    let answer = tokio::io::copy(&mut from_server, &mut to_client);
    tokio::select! {
        biased;
        asked = ask => asked,
        answered = answer => Ok(answered.map(drop)?),
    }
}
