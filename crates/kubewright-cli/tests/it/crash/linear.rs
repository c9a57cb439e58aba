//! Concurrent clients and watches on one server process, which is killed repeatedly: the history is linearizable and
//! the watches are complete.
//!
//! `KUBEWRIGHT_CRASH_KILLS` sets the number of kills, `KUBEWRIGHT_CRASH_SEED` the seed.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use tokio::sync::watch;

use super::clients::{Count, KEYS, Requests, list, mark};
use super::history::{Recorder, Session};
use super::server::Server;
use super::versions::{Summary, check};
use super::watcher::{Start, Watcher};
use super::{DEADLINE, folder, seed};

const CLIENTS: usize = 8;
const WATCHES: [Start; 3] = [Start::List, Start::Zero, Start::List];

fn kills() -> Result<usize> {
    match std::env::var("KUBEWRIGHT_CRASH_KILLS") {
        Ok(kills) => kills.parse().context("KUBEWRIGHT_CRASH_KILLS must be a number"),
        Err(_) => Ok(25),
    }
}

/// The state of the test between two runs of the server.
struct Test {
    recorder: Arc<Recorder>,
    random: fastrand::Rng,
    /// The watches, to be resumed.
    sessions: Vec<Option<Session>>,
}

impl Test {
    fn new(seed: u64) -> Self {
        let sessions = WATCHES.iter().map(|_| None).collect();
        Self { recorder: Arc::new(Recorder::new(KEYS)), random: fastrand::Rng::with_seed(seed), sessions }
    }

    /// Runs clients and watches on a server for a number of responses. Then kills the server, or stops the clients
    /// and waits for the last events.
    async fn round(&mut self, server: Server, responses: usize, kills: bool) -> Result<()> {
        let mut watchers = Vec::new();
        for (start, session) in WATCHES.iter().zip(&mut self.sessions) {
            let watcher = Watcher::start(&server.client(), &self.recorder, *start, session.take()).await?;
            watchers.push(watcher);
        }
        let (last, end) = watch::channel(None);
        let watchers: Vec<_> =
            watchers.into_iter().map(|watcher| tokio::spawn(watcher.run(end.clone()))).collect();
        let count = Arc::new(Count::new(responses));
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| {
                let (client, recorder, count) = (server.client(), self.recorder.clone(), count.clone());
                let random = self.random.fork();
                tokio::spawn(Requests { client, recorder, count, random, stops: !kills }.run())
            })
            .collect();
        count.done().await;
        let server = if kills {
            server.kill()?;
            None
        } else {
            Some(server)
        };
        for client in clients {
            client.await??;
        }
        self.recorder.crashed();
        if let Some(server) = &server {
            last.send_replace(Some(mark(&server.client(), &self.recorder).await?));
            list(&server.client(), &self.recorder).await?.context("the list was not answered")?;
        }
        for (watcher, session) in watchers.into_iter().zip(&mut self.sessions) {
            *session = Some(watcher.await??);
        }
        server.map_or(Ok(()), Server::kill)
    }

    fn check(mut self) -> Result<Summary> {
        let sessions: Vec<Session> = self.sessions.iter_mut().filter_map(Option::take).collect();
        self.recorder.change(|history| history.sessions.extend(sessions));
        check(&self.recorder.history())
    }
}

async fn run(seed: u64, dir: Option<&Path>, kills: usize, responses: usize) -> Result<Summary> {
    let mut test = Test::new(seed);
    let files = folder();
    for round in 0..=kills {
        let in_round = || format!("round {round}");
        let server = match dir {
            Some(dir) => Server::start(dir).await,
            None => Server::start_in_memory(files.path()).await,
        };
        let wanted = test.random.usize(responses / 2..=responses);
        let round = test.round(server.with_context(in_round)?, wanted, round < kills);
        tokio::time::timeout(DEADLINE, round).await.with_context(in_round)?.with_context(in_round)?;
    }
    let started = std::time::Instant::now();
    let summary = test.check()?;
    println!("{kills} kills: {summary}, checked in {:?}", started.elapsed());
    ensure!(summary.requests > responses / 4 * (kills + 1), "too few requests: {summary}");
    ensure!(summary.events > summary.versions, "too few watch events: {summary}");
    Ok(summary)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_and_watches_are_linearizable_in_memory() -> Result<()> {
    let seed = seed()?;
    let summary = run(seed, None, 0, 3_000).await.with_context(|| format!("KUBEWRIGHT_CRASH_SEED={seed}"))?;
    ensure!(summary.without_response == 0, "requests without a response: {summary}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_and_watches_are_linearizable_over_kills() -> Result<()> {
    let (seed, kills) = (seed()?, kills()?);
    let dir = folder();
    let variables = || format!("KUBEWRIGHT_CRASH_SEED={seed} KUBEWRIGHT_CRASH_KILLS={kills}");
    let summary = run(seed, Some(dir.path()), kills, 200).await.with_context(variables)?;
    ensure!(summary.without_response >= kills, "too few requests without a response: {summary}");
    Ok(())
}
