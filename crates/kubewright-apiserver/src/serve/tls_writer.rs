//! A TLS connection that coalesces writes.
//!
//! HTTP/2 flushes after every frame of at most 16 KB. A list of 10,000 objects would need a thousand system
//! calls, and two TLS records per frame, because the frame header exceeds the record by nine bytes. Here
//! `poll_flush` does nothing. Written data fills whole records, and is sent when enough has accumulated, or
//! when the connection has nothing more to write for now, which [`TlsWriter::serve`] detects.

use std::future::poll_fn;
use std::io::{self, IoSlice, Write as _};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

/// Maximum payload of a TLS record.
const RECORD: usize = 16 << 10;
/// Data is sent when this much is encrypted.
const ENOUGH: usize = 32 * RECORD;

/// The connection. Clones share it.
#[derive(Clone)]
pub(super) struct TlsWriter(Arc<Mutex<Inner>>);

struct Inner {
    stream: TlsStream<TcpStream>,
    /// Data that does not fill a record yet.
    rest: Vec<u8>,
    /// Bytes encrypted since the last complete send.
    encrypted: usize,
}

impl TlsWriter {
    pub(super) fn new(mut stream: TlsStream<TcpStream>) -> Self {
        // Bounded here instead, so that rustls does not split a record at its limit.
        stream.get_mut().1.set_buffer_limit(None);
        Self(Arc::new(Mutex::new(Inner { stream, rest: Vec::new(), encrypted: 0 })))
    }

    /// Polls the HTTP connection, and sends buffered data whenever it has to wait.
    pub(super) async fn serve<E: From<io::Error>>(
        &self,
        connection: impl Future<Output = Result<(), E>>,
    ) -> Result<(), E> {
        let mut connection = pin!(connection);
        let mut gave_way = false;
        poll_fn(|cx| {
            // Yield once, so that other ready requests run first and their responses are sent together.
            gave_way = !gave_way;
            if gave_way {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            let ended = connection.as_mut().poll(cx);
            // A finished connection has closed the stream, which sent the remaining data.
            if ended.is_pending()
                && let Poll::Ready(Err(error)) = self.inner().send(cx)
            {
                return Poll::Ready(Err(error.into()));
            }
            ended
        })
        .await
    }

    /// Only one task uses it, so the lock is never contended.
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        let mut writer = self.stream.get_mut().1.writer();
        while self.rest.len() + bytes.len() >= RECORD {
            let (now, later) = bytes.split_at(RECORD - self.rest.len());
            // Without a buffer limit, all of it is accepted.
            let _ = writer.write_vectored(&[IoSlice::new(&self.rest), IoSlice::new(now)])?;
            self.encrypted += RECORD;
            self.rest.clear();
            bytes = later;
        }
        self.rest.extend_from_slice(bytes);
        Ok(())
    }

    fn send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.rest.is_empty() {
            self.stream.get_mut().1.writer().write_all(&self.rest)?;
            self.encrypted += self.rest.len();
            self.rest.clear();
        }
        ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
        self.encrypted = 0;
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for TlsWriter {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner().stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for TlsWriter {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut inner = self.inner();
        if inner.encrypted >= ENOUGH {
            ready!(inner.send(cx))?;
        }
        let taken = bytes.len().min(ENOUGH);
        inner.write(&bytes[..taken])?;
        Poll::Ready(Ok(taken))
    }

    /// Deferred: see the module documentation.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut inner = self.inner();
        ready!(inner.send(cx))?;
        Pin::new(&mut inner.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::net::Ipv4Addr;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use rustls::{ClientConfig, RootCertStore, ServerConfig};
    use rustls_pki_types::ServerName;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;
    use tokio_rustls::{TlsAcceptor, TlsConnector, client};

    use super::*;
    use crate::certs::Authority;

    /// The length of an HTTP/2 data frame: header and payload.
    const FRAME: usize = 9 + (16 << 10);

    /// The TLS records that a client has received.
    #[derive(Default)]
    struct Records {
        sizes: Vec<usize>,
        /// Remaining bytes of the current record.
        left: usize,
        head: Vec<u8>,
    }

    impl Records {
        fn read(&mut self, mut bytes: &[u8]) {
            while let Some(first) = bytes.first() {
                if self.left > 0 {
                    let now = self.left.min(bytes.len());
                    self.left -= now;
                    bytes = &bytes[now..];
                    continue;
                }
                self.head.push(*first);
                bytes = &bytes[1..];
                if let [_, _, _, high, low] = *self.head {
                    self.left = usize::from(u16::from_be_bytes([high, low]));
                    self.sizes.push(self.left);
                    self.head.clear();
                }
            }
        }
    }

    /// A client socket that counts TLS records.
    struct Watched {
        socket: TcpStream,
        records: Records,
    }

    impl AsyncRead for Watched {
        fn poll_read(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            buffer: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            let before = buffer.filled().len();
            ready!(Pin::new(&mut self.socket).poll_read(cx, buffer))?;
            self.records.read(&buffer.filled()[before..]);
            Poll::Ready(Ok(()))
        }
    }

    impl AsyncWrite for Watched {
        fn poll_write(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            Pin::new(&mut self.socket).poll_write(cx, bytes)
        }

        fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut self.socket).poll_flush(cx)
        }

        fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut self.socket).poll_shutdown(cx)
        }
    }

    async fn connected() -> (TlsWriter, client::TlsStream<Watched>) {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let authority = Authority::new().unwrap();
        let identity = authority.server(&[Ipv4Addr::LOCALHOST.into()]).unwrap();
        let theirs = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![identity.cert], identity.key)
            .unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(authority.der().clone()).unwrap();
        let ours = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let accept = async {
            let (socket, _) = listener.accept().await.unwrap();
            TlsAcceptor::from(Arc::new(theirs)).accept(socket).await.unwrap()
        };
        let connect = async {
            let socket =
                Watched { socket: TcpStream::connect(address).await.unwrap(), records: Records::default() };
            let name = ServerName::from(address.ip());
            TlsConnector::from(Arc::new(ours)).connect(name, socket).await.unwrap()
        };
        let (server, client) = tokio::join!(accept, connect);
        (TlsWriter::new(server), client)
    }

    fn sizes(client: &client::TlsStream<Watched>) -> &[usize] {
        &client.get_ref().0.records.sizes
    }

    fn body(length: usize) -> Vec<u8> {
        (0..length).map(|at| u8::try_from(at % 251).unwrap()).collect()
    }

    #[tokio::test]
    async fn frames_fill_records_and_arrive_complete() {
        let (wire, mut client) = connected().await;
        let sent = body(64 * FRAME + 5);
        let write = async {
            let mut writer = wire.clone();
            for frame in sent.chunks(FRAME) {
                let (head, data) = frame.split_at(frame.len().min(9));
                writer.write_all(head).await?;
                writer.write_all(data).await?;
                writer.flush().await?;
            }
            writer.shutdown().await
        };
        let read = async {
            let mut read = Vec::new();
            client.read_to_end(&mut read).await.map(|_| read)
        };
        let (written, read) = tokio::join!(wire.serve(write), read);
        written.unwrap();
        assert_eq!(read.unwrap(), sent);
        // A record is slightly longer than its payload.
        let whole = sizes(&client).iter().filter(|size| **size > RECORD).count();
        assert_eq!(whole, sent.len() / RECORD);
        let large = sizes(&client).iter().filter(|size| **size > 2_000).count();
        assert_eq!(large, whole);
    }

    #[tokio::test]
    async fn buffered_data_is_sent_when_the_connection_waits() {
        let (wire, mut client) = connected().await;
        let before = sizes(&client).len();
        let write = async {
            let mut writer = wire.clone();
            for word in ["to", "get", "her"] {
                writer.write_all(word.as_bytes()).await?;
                writer.flush().await?;
            }
            pending::<io::Result<()>>().await
        };
        let mut word = [0; 8];
        tokio::select! {
            ended = wire.serve(write) => panic!("connection ended: {ended:?}"),
            read = client.read_exact(&mut word) => { read.unwrap(); }
        }
        assert_eq!(&word, b"together");
        // Besides the response, the client receives session tickets of the handshake.
        let answers = sizes(&client)[before..].iter().filter(|size| **size < 50).count();
        assert_eq!(answers, 1, "{:?}", sizes(&client));
    }

    #[tokio::test]
    async fn a_client_that_does_not_read_blocks_the_writer() {
        const ALL: usize = 64 << 20;
        let (wire, mut client) = connected().await;
        let taken = Arc::new(AtomicUsize::new(0));
        let write = async {
            let mut writer = wire.clone();
            let piece = body(RECORD);
            while taken.fetch_add(piece.len(), Ordering::Relaxed) < ALL {
                writer.write_all(&piece).await?;
            }
            writer.shutdown().await
        };
        let mut serving = pin!(wire.serve(write));
        // Write until there is no progress: the socket is full, and only a reader can change that.
        let stuck = poll_fn(|cx| {
            let before = taken.load(Ordering::Relaxed);
            for _ in 0..100 {
                assert!(serving.as_mut().poll(cx).is_pending(), "64 MiB are more than a socket holds");
            }
            if taken.load(Ordering::Relaxed) == before { Poll::Ready(before) } else { Poll::Pending }
        });
        assert!(stuck.await < ALL);
        let read = async {
            let mut read = 0;
            let mut buffer = vec![0; 1 << 20];
            loop {
                match client.read(&mut buffer).await.unwrap() {
                    0 => return read,
                    some => read += some,
                }
            }
        };
        let (resource, read) = tokio::join!(serving, read);
        resource.unwrap();
        assert_eq!(read, ALL);
    }
}
