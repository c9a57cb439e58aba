//! The operator's journal: JSON lines over TCP from the manager that `kubewright dev` started.
//!
//! Unknown records are skipped, so that operators of other kubewright versions work. A connection must start
//! with `hello` and the token that `dev` sets in the operator's environment; others are closed.

use std::sync::Arc;

use kubewright_page::model::records::Record;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::state::Shared;

/// Maximum line length.
const LINE: u64 = 1 << 20;
/// Maximum number of operators that write at the same time.
const OPERATORS: usize = 16;

/// Reads journals while polled.
pub(super) async fn listen(listener: TcpListener, token: Arc<str>, shared: Arc<Shared>) {
    let mut readers = JoinSet::new();
    let mut connection = 0;
    loop {
        tokio::select! {
            accepted = listener.accept(), if readers.len() < OPERATORS => match accepted {
                Ok((stream, _)) => {
                    connection += 1;
                    readers.spawn(read(connection, stream, token.clone(), shared.clone()));
                }
                // Out of file descriptors, or the client disconnected early.
                Err(_) => tokio::task::yield_now().await,
            },
            Some(_) = readers.join_next() => {}
        }
    }
}

async fn read(connection: u64, stream: TcpStream, token: Arc<str>, shared: Arc<Shared>) {
    let mut reader = BufReader::new(stream);
    let mut line = Vec::new();
    let mut greeted = false;
    loop {
        line.clear();
        let Ok(_) = (&mut reader).take(LINE).read_until(b'\n', &mut line).await else { break };
        // End of stream, or the line is too long.
        if line.last() != Some(&b'\n') {
            break;
        }
        let record = serde_json::from_slice(&line);
        if !greeted {
            let Ok(Record::Hello(hello)) = &record else { return };
            if *hello.token != *token {
                return shared.update(|state| {
                    state.status.rejected.insert(hello.operator.clone());
                    state.publish_status();
                });
            }
        }
        greeted = true;
        if let Ok(record) = record {
            shared.update(|state| state.record(connection, record));
        }
    }
    shared.update(|state| state.work.closed(connection, &mut state.board));
}
