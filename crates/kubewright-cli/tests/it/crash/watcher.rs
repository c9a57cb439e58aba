//! Watches that record their events, and resume after a restart of the server.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail, ensure};
use futures_util::{Stream, TryStreamExt as _};
use kube::Client;
use kube::core::WatchEvent;
use serde_json::Value;
use tokio::sync::watch;

use super::clients::{key_of, list, mark, version};
use super::history::{Event, Kind, Recorder, Session};
use super::writer::PATH;

/// How a watch starts if it cannot be resumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    /// From the revision of a list.
    List,
    /// From resourceVersion 0: the existing objects are the first events.
    Zero,
}

type Events = Pin<Box<dyn Stream<Item = kube::Result<WatchEvent<Value>>> + Send>>;

pub(crate) struct Watcher {
    events: Events,
    session: Session,
}

/// One message of a watch.
enum Message {
    Event(Event),
    /// An event of another object, or a bookmark.
    Other,
    /// The revision has expired.
    Expired,
}

async fn open(client: &Client, from: u64) -> Result<Events> {
    let path = format!("{PATH}?watch=true&resourceVersion={from}");
    let stream = client.request_events(http::Request::get(path).body(Vec::new())?).await?;
    Ok(Box::pin(stream))
}

fn read(event: WatchEvent<Value>) -> Result<Message> {
    let (kind, object) = match event {
        WatchEvent::Added(object) => (Kind::Added, object),
        WatchEvent::Modified(object) => (Kind::Modified, object),
        WatchEvent::Deleted(object) => (Kind::Deleted, object),
        WatchEvent::Bookmark(_) => return Ok(Message::Other),
        WatchEvent::Error(status) if status.code == 410 => return Ok(Message::Expired),
        WatchEvent::Error(status) => bail!("the watch failed: {status:?}"),
    };
    let Some(key) = key_of(&object) else { return Ok(Message::Other) };
    Ok(Message::Event(Event { kind, key, version: version(&object)? }))
}

impl Watcher {
    /// Resumes after the last event of the previous watch. If that revision has expired, records the previous watch and
    /// starts a new one. Clients must not write meanwhile.
    pub(crate) async fn start(
        client: &Client,
        recorder: &Arc<Recorder>,
        start: Start,
        previous: Option<Session>,
    ) -> Result<Self> {
        if let Some(session) = previous {
            let mut resumed = Self { events: open(client, session.last()).await?, session };
            let marker = mark(client, recorder).await?;
            if resumed.follow(marker).await? {
                return Ok(resumed);
            }
            recorder.change(|history| history.sessions.push(resumed.session));
        }
        let current = list(client, recorder).await?.context("the list was not answered")?;
        let from = if start == Start::Zero { 0 } else { current.revision };
        let mut events = open(client, from).await?;
        let mut items = BTreeMap::new();
        while start == Start::Zero && items.len() < current.items.len() {
            let event = events.try_next().await?.context("the watch has ended")?;
            match read(event)? {
                Message::Event(event) => {
                    items.insert(event.key, event.version);
                }
                Message::Other => {}
                Message::Expired => bail!("revision 0 has expired"),
            }
        }
        ensure!(
            start == Start::List || items == current.items,
            "the first events are {items:?}, and the list is {current:?}"
        );
        let session = Session { from: current.revision, items: current.items, events: Vec::new() };
        Ok(Self { events, session })
    }

    /// Records the events up to a revision. Returns false if the watch has expired.
    async fn follow(&mut self, last: u64) -> Result<bool> {
        while self.session.last() < last {
            let event = self.events.try_next().await?.context("the watch has ended")?;
            match read(event)? {
                Message::Event(event) => self.session.events.push(event),
                Message::Other => {}
                Message::Expired => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Records events until the connection ends, or up to the revision in `last`.
    pub(crate) async fn run(mut self, mut last: watch::Receiver<Option<u64>>) -> Result<Session> {
        loop {
            if last.borrow_and_update().is_some_and(|last| self.session.last() >= last) {
                return Ok(self.session);
            }
            let event = tokio::select! {
                event = self.events.try_next() => event,
                changed = last.changed() => {
                    changed.context("the test has ended")?;
                    continue;
                }
            };
            // The connection ends with the server.
            let Ok(Some(event)) = event else { return Ok(self.session) };
            match read(event)? {
                Message::Event(event) => self.session.events.push(event),
                Message::Other => {}
                Message::Expired => bail!("a running watch has expired"),
            }
        }
    }
}
