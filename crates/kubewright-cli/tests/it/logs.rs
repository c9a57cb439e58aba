//! Server logs on standard error.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use crate::run::command;

/// Timeout for a line.
const DEADLINE: Duration = Duration::from_mins(1);

struct Server {
    process: Child,
    address: String,
}

impl Server {
    /// Starts a server with a data directory, and waits until it is ready.
    fn start(dir: &Path, flags: &str) -> Result<Self> {
        let mut command = command(&format!("apiserver --port 0 {flags}"));
        command.arg("--kubeconfig").arg(dir.join("kubeconfig")).arg("--data-dir").arg(dir.join("data"));
        let process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let mut server = Self { process, address: String::new() };
        let mut ready = String::new();
        let stdout = server.process.stdout.take().context("no standard output")?;
        BufReader::new(stdout).read_line(&mut ready)?;
        let address = ready.strip_prefix("ready https://").and_then(|rest| rest.split(' ').next());
        address.with_context(|| format!("not ready: {ready:?}"))?.clone_into(&mut server.address);
        Ok(server)
    }

    /// Sends garbage and waits until the server closes the connection.
    fn knock(&self) -> Result<()> {
        let mut socket = TcpStream::connect(&self.address)?;
        socket.write_all(b"GET / HTTP/1.1\r\n\r\n")?;
        // The server may send a TLS alert or nothing.
        let _ = std::io::copy(&mut socket, &mut std::io::sink());
        Ok(())
    }

    /// Standard error, line by line.
    fn lines(&mut self) -> Result<mpsc::Receiver<String>> {
        let stderr = self.process.stderr.take().context("no standard error")?;
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            let lines = BufReader::new(stderr).lines().map_while(Result::ok);
            // The receiver may be gone.
            lines.map(|line| sender.send(line)).take_while(Result::is_ok).for_each(drop);
        });
        Ok(lines)
    }

    /// Waits for a line that contains `text`.
    fn expect_line(&mut self, text: &str) -> Result<()> {
        let lines = self.lines()?;
        loop {
            let line =
                lines.recv_timeout(DEADLINE).with_context(|| format!("no line with {text:?} was logged"))?;
            if line.contains(text) {
                return Ok(());
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have exited already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn failed_connections_are_logged_with_verbose() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let mut server = Server::start(dir.path(), "--verbose")?;
    server.knock()?;
    server.expect_line("DEBUG TLS handshake failed error=")
}

#[test]
fn failed_connections_are_not_logged_by_default() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let mut server = Server::start(dir.path(), "")?;
    // When the second connection is closed, the log of the first would be complete.
    server.knock()?;
    server.knock()?;
    server.process.kill()?;
    let logged: Vec<String> = server.lines()?.iter().collect();
    assert!(matches!(&logged[..], [line] if line.starts_with("note: kubeconfig: ")), "{logged:#?}");
    Ok(())
}

#[test]
fn warnings_are_always_logged() -> Result<()> {
    let dir = tempfile::tempdir()?;
    drop(Server::start(dir.path(), "")?);
    std::fs::write(dir.path().join("data/snapshot-00000000000000000150"), "not a snapshot")?;
    Server::start(dir.path(), "")?.expect_line("WARN  skipping damaged snapshot error=")
}

#[test]
fn a_full_standard_error_does_not_block_the_server() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let mut server = Server::start(dir.path(), "--verbose")?;
    // Each connection logs a line of more than 64 bytes, and the pipe of 64 KiB is not read. Concurrent connections log
    // on several threads, which compete for the last space of the pipe.
    std::thread::scope(|scope| {
        let knocks = || (0..200).try_for_each(|_| server.knock());
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(knocks)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("no panic"))
    })?;
    // The first line after the pipe has space again reports the loss.
    let lines = server.lines()?;
    let deadline = Instant::now() + DEADLINE;
    while !lines.try_iter().any(|line| line.contains("log lines were dropped")) {
        anyhow::ensure!(Instant::now() < deadline, "the loss was not reported");
        server.knock()?;
    }
    Ok(())
}
