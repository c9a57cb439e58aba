//! The versions of all objects that responses, lists and watches have shown, and the checks by resourceVersion:
//! each version exists once, revisions follow the order of requests, lists are consistent, watches are complete.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use anyhow::{Context as _, Result, bail, ensure};

use super::checker::linearize;
use super::history::{Content, Event, History, Key, Kind, Listing, Outcome, Request, Session, Version};

/// Figures of a checked history.
#[derive(Debug)]
pub(crate) struct Summary {
    pub(crate) requests: usize,
    pub(crate) without_response: usize,
    pub(crate) lists: usize,
    pub(crate) versions: usize,
    pub(crate) sessions: usize,
    pub(crate) events: usize,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { requests, without_response, lists, versions, sessions, events } = self;
        write!(f, "{requests} requests ({without_response} without a response), {lists} lists, ")?;
        write!(f, "{versions} versions, {sessions} watches with {events} events")
    }
}

/// Checks a whole history.
pub(crate) fn check(history: &History) -> Result<Summary> {
    let versions = Versions::of(history)?;
    check_order(history)?;
    for list in &history.lists {
        versions.check_list(list).with_context(|| format!("the list at {}", list.revision))?;
    }
    for (at, session) in history.sessions.iter().enumerate() {
        versions
            .check_session(session)
            .with_context(|| format!("watch {at} from {} to {}", session.from, session.last()))?;
    }
    for (key, operations) in history.by_key().iter().enumerate() {
        linearize(operations, &versions).with_context(|| format!("object {key}"))?;
    }
    let unknown = history.operations.iter().filter(|it| it.outcome == Outcome::Unknown);
    Ok(Summary {
        requests: history.operations.len(),
        without_response: unknown.count(),
        lists: history.lists.len(),
        versions: versions.log.values().map(BTreeMap::len).sum(),
        sessions: history.sessions.len(),
        events: history.sessions.iter().map(|session| session.events.len()).sum(),
    })
}

/// All versions that were shown.
#[derive(Debug, Default)]
pub(crate) struct Versions {
    revisions: BTreeMap<Content, u64>,
    deletions: BTreeMap<Content, u64>,
    numbers: BTreeSet<u64>,
    /// By object and revision; `None` is a deletion.
    log: BTreeMap<Key, BTreeMap<u64, Option<Content>>>,
}

impl Versions {
    fn of(history: &History) -> Result<Self> {
        let mut versions = Self::default();
        for operation in &history.operations {
            if let Outcome::Version(version) = operation.outcome {
                versions.add(operation.key, version, false)?;
            }
        }
        let lists = history.lists.iter().map(|list| &list.items);
        let starts = history.sessions.iter().map(|session| &session.items);
        for (key, version) in lists.chain(starts).flatten() {
            versions.add(*key, *version, false)?;
        }
        for event in history.sessions.iter().flat_map(|session| &session.events) {
            versions.add(event.key, event.version, event.kind == Kind::Deleted)?;
        }
        versions.check_origin(history)?;
        Ok(versions)
    }

    fn add(&mut self, key: Key, Version { revision, content }: Version, deleted: bool) -> Result<()> {
        let revisions = if deleted { &mut self.deletions } else { &mut self.revisions };
        let known = *revisions.entry(content).or_insert(revision);
        let what = if deleted { "deleted" } else { "written" };
        ensure!(known == revision, "object {key}: {content:?} was {what} at {known} and at {revision}");
        self.numbers.extend([content.value, content.patch]);
        let change = (!deleted).then_some(content);
        let logged = *self.log.entry(key).or_default().entry(revision).or_insert(change);
        ensure!(logged == change, "object {key}: revision {revision} is {logged:?} and {change:?}");
        Ok(())
    }

    /// Every version must come from a request for this object.
    fn check_origin(&self, history: &History) -> Result<()> {
        let mut sent: BTreeMap<u64, Key> = BTreeMap::new();
        for operation in &history.operations {
            if let Request::Create { value } | Request::Update { value, .. } | Request::Patch { value, .. } =
                operation.request
            {
                sent.insert(value, operation.key);
            }
        }
        for (key, log) in &self.log {
            for (revision, content) in
                log.iter().filter_map(|(revision, change)| Some((revision, (*change)?)))
            {
                let numbers = [content.value, content.patch].into_iter().filter(|number| *number != 0);
                for number in numbers {
                    ensure!(
                        sent.get(&number) == Some(key),
                        "object {key}: no request wrote {content:?} at {revision}"
                    );
                }
            }
        }
        Ok(())
    }

    /// The revision of a version, if it was shown.
    pub(crate) fn revision(&self, content: Content) -> Option<u64> {
        self.revisions.get(&content).copied()
    }

    /// The revision at which a version was deleted, if a watch has shown it.
    pub(crate) fn deletion(&self, content: Content) -> Option<u64> {
        self.deletions.get(&content).copied()
    }

    /// Whether a version with the number of this write was shown.
    pub(crate) fn has_number(&self, number: u64) -> bool {
        self.numbers.contains(&number)
    }

    /// A list shows the state at its revision.
    fn check_list(&self, list: &Listing) -> Result<()> {
        for (key, log) in &self.log {
            let last = log.range(..=list.revision).next_back();
            match (list.items.get(key), last) {
                (Some(item), _) if item.revision > list.revision => {
                    bail!("object {key} has the later revision {}", item.revision)
                }
                (Some(item), Some((revision, change))) => {
                    ensure!(
                        *revision == item.revision,
                        "object {key} is listed at {}, but {change:?} is from {revision}",
                        item.revision
                    );
                }
                (None, Some((revision, Some(content)))) => {
                    let deleted = self.deletion(*content);
                    ensure!(
                        deleted.is_none_or(|deleted| deleted <= list.revision),
                        "object {key} is missing: {content:?} is from {revision} and was deleted at {deleted:?}"
                    );
                }
                (_, None) | (None, Some((_, None))) => {}
            }
        }
        Ok(())
    }

    /// A watch shows every version after its start once, in order, with the correct type.
    fn check_session(&self, session: &Session) -> Result<()> {
        let mut objects = session.items.clone();
        let mut last = session.from;
        let mut shown = BTreeSet::new();
        for event in &session.events {
            let Event { kind, key, version } = *event;
            ensure!(version.revision > last, "{event:?} follows revision {last}");
            last = version.revision;
            shown.insert((key, last));
            let before = objects.get(&key).copied();
            ensure!(before.is_some() == (kind != Kind::Added), "{event:?} follows {before:?}");
            if kind == Kind::Deleted {
                ensure!(
                    before.is_some_and(|before| before.content == version.content),
                    "{event:?} follows {before:?}"
                );
                objects.remove(&key);
            } else {
                objects.insert(key, version);
            }
        }
        for (key, log) in &self.log {
            let later = log.range(session.from + 1..);
            for (revision, change) in later.take_while(|(revision, _)| **revision <= last) {
                ensure!(
                    shown.contains(&(*key, *revision)),
                    "missing event for {change:?} of object {key} at {revision}"
                );
            }
        }
        Ok(())
    }
}

/// A write that starts after a response has a higher revision than that response. A list is not older than an
/// earlier response.
fn check_order(history: &History) -> Result<()> {
    let mut shown: Vec<(u64, u64)> = Vec::new();
    let mut starts: Vec<(u64, u64, bool)> = Vec::new();
    for operation in &history.operations {
        if let Outcome::Version(version) = operation.outcome {
            shown.push((operation.end, version.revision));
            if operation.request != Request::Get {
                starts.push((operation.start, version.revision, true));
            }
        }
    }
    for list in &history.lists {
        shown.push((list.end, list.revision));
        starts.push((list.start, list.revision, false));
    }
    shown.sort_unstable();
    starts.sort_unstable();
    let (mut shown, mut highest) = (shown.into_iter().peekable(), 0);
    for (start, revision, is_write) in starts {
        while let Some((_, earlier)) = shown.next_if(|(end, _)| *end < start) {
            highest = highest.max(earlier);
        }
        let ok = if is_write { revision > highest } else { revision >= highest };
        ensure!(ok, "revision {revision} was assigned after a response with {highest}");
    }
    Ok(())
}
