//! The operator's journal: JSON lines over TCP from the manager that `kubewright dev` started.
//!
//! Unknown records are skipped, so that operators of other kubewright versions work. A connection must start
//! with `hello` and the token that `dev` sets in the operator's environment; others are closed.

use std::sync::Arc;
use std::time::Duration;

use kubewright_page::model::records::Record;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::connections::Connections;
use super::state::Shared;

/// Maximum line length.
const LINE: u64 = 1 << 20;
/// Maximum number of operators that write at the same time.
const OPERATORS: usize = 16;
/// Timeout for `hello`.
const HELLO: Duration = Duration::from_secs(5);
/// Maximum number of rejected operators that the page shows, and maximum length of their names.
const REJECTED: usize = 16;
const NAME: usize = 64;

/// Reads journals while polled.
pub(super) async fn listen(listener: TcpListener, token: Arc<str>, shared: Arc<Shared>) {
    read_all(listener, token, HELLO, shared).await;
}

async fn read_all(listener: TcpListener, token: Arc<str>, patience: Duration, shared: Arc<Shared>) {
    let mut readers = JoinSet::new();
    let mut incoming = Connections::new(listener);
    let mut connection = 0;
    loop {
        tokio::select! {
            stream = incoming.next(), if readers.len() < OPERATORS => {
                connection += 1;
                let (stream, token, shared) = (BufReader::new(stream), token.clone(), shared.clone());
                readers.spawn(read(connection, stream, token, patience, shared));
            }
            Some(_) = readers.join_next() => {}
        }
    }
}

async fn read(
    connection: u64,
    mut stream: BufReader<TcpStream>,
    token: Arc<str>,
    patience: Duration,
    shared: Arc<Shared>,
) {
    let mut line = Vec::new();
    if !timeout(patience, next_line(&mut stream, &mut line)).await.unwrap_or(false) {
        return;
    }
    let Ok(Record::Hello(hello)) = serde_json::from_slice(&line) else { return };
    if *hello.token != *token {
        return shared.update(|state| {
            let name = &hello.operator[..hello.operator.floor_char_boundary(NAME)];
            let rejected = &mut state.status.rejected;
            if rejected.len() < REJECTED && rejected.insert(name.to_owned()) {
                state.publish_status();
            }
        });
    }
    shared.update(|state| state.record(connection, Record::Hello(hello)));
    while next_line(&mut stream, &mut line).await {
        if let Ok(record) = serde_json::from_slice(&line) {
            shared.update(|state| state.record(connection, record));
        }
    }
    shared.update(|state| state.work.closed(connection, &mut state.board));
}

/// Reads a line. Returns false at the end of the stream, and if the line is too long.
async fn next_line(stream: &mut BufReader<TcpStream>, line: &mut Vec<u8>) -> bool {
    line.clear();
    stream.take(LINE).read_until(b'\n', line).await.is_ok() && line.last() == Some(&b'\n')
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::net::TcpStream as Client;

    use super::super::state;
    use super::*;

    const ADDRESS: (std::net::Ipv4Addr, u16) = (std::net::Ipv4Addr::LOCALHOST, 0);

    fn hello(client: &mut Client, operator: &str, token: &str) {
        let hello = serde_json::json!({"type": "hello", "at": "", "operator": operator, "token": token});
        writeln!(client, "{hello}").unwrap();
    }

    /// Waits until the state has a property.
    async fn wait_for(shared: &Shared, mut has: impl FnMut(&state::State) -> bool) {
        let mut changes = shared.changes();
        while !shared.read(&mut has) {
            changes.changed().await.unwrap();
        }
    }

    #[tokio::test]
    async fn silent_connections_do_not_keep_the_operator_out() {
        let listener = TcpListener::bind(ADDRESS).await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(state::shared());
        // Short for a test: the silent connections are closed one after another.
        tokio::spawn(read_all(listener, "secret".into(), Duration::from_millis(50), shared.clone()));
        let silent: Vec<Client> = (0..OPERATORS).map(|_| Client::connect(address).unwrap()).collect();
        let mut operator = Client::connect(address).unwrap();
        hello(&mut operator, "mine", "secret");
        wait_for(&shared, |state| state.work.is_operator("mine")).await;
        drop(silent);
    }

    #[tokio::test]
    async fn names_of_rejected_operators_are_bounded() {
        let listener = TcpListener::bind(ADDRESS).await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(state::shared());
        tokio::spawn(listen(listener, "secret".into(), shared.clone()));
        for number in 0..2 * REJECTED {
            hello(
                &mut Client::connect(address).unwrap(),
                &format!("{number:02}{}", "\u{e4}".repeat(100)),
                "",
            );
        }
        let mut operator = Client::connect(address).unwrap();
        hello(&mut operator, "mine", "secret");
        wait_for(&shared, |state| state.work.is_operator("mine")).await;
        wait_for(&shared, |state| state.status.rejected.len() == REJECTED).await;
        shared.read(|state| assert!(state.status.rejected.iter().all(|name| name.len() <= NAME)));
    }
}
