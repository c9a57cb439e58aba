//! Searches a linearization of the requests of one object: an order of their effects that respects the order of
//! requests that did not overlap, and in which every response is correct.
//!
//! The search is that of Wing and Gong with Lowe's memoization: a position that was reached before is not tried
//! again. A position is the object's state and the requests that have not taken effect.

use std::collections::HashSet;

use anyhow::{Result, bail};

use super::history::{Content, Operation, Outcome, Request, Version};
use super::versions::Versions;

/// The state of the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct State {
    content: Option<Content>,
    /// The highest known revision of the object so far.
    revision: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Position {
    state: State,
    /// Requests before `next` that have not taken effect.
    open: Vec<usize>,
    /// The first request that cannot be next, because an open one ended before it.
    next: usize,
}

/// Checks the requests of one object, ordered by their starts.
pub(crate) fn linearize(operations: &[Operation], versions: &Versions) -> Result<()> {
    let search = Search { operations, versions };
    let state = State { content: None, revision: 0 };
    let mut stack = vec![search.opened(Position { state, open: Vec::new(), next: 0 })];
    let mut tried = HashSet::new();
    let mut furthest: Option<(usize, Position)> = None;
    while let Some(position) = stack.pop() {
        if search.is_done(&position) {
            return Ok(());
        }
        if !tried.insert(position.clone()) {
            continue;
        }
        let effects = position.next - position.open.len();
        if furthest.as_ref().is_none_or(|(most, _)| effects > *most) {
            furthest = Some((effects, position.clone()));
        }
        search.push_next(&position, &mut stack);
    }
    let Some((effects, position)) = furthest else { bail!("no position") };
    let open: Vec<String> = position.open.iter().map(|at| format!("{:?}", operations[*at])).collect();
    bail!(
        "not linearizable: after {effects} of {} requests the state is {:?}, and none of these can be next:\n{}",
        operations.len(),
        position.state,
        open.join("\n")
    )
}

struct Search<'a> {
    operations: &'a [Operation],
    versions: &'a Versions,
}

impl Search<'_> {
    /// A request without a response may have no effect, unless its version was seen.
    fn is_optional(&self, at: usize) -> bool {
        let operation = &self.operations[at];
        let seen = match operation.request {
            Request::Create { value } | Request::Update { value, .. } | Request::Patch { value, .. } => {
                self.versions.has_number(value)
            }
            Request::Delete { .. } | Request::Get => false,
        };
        operation.outcome == Outcome::Unknown && !seen
    }

    /// Opens the requests that started before any open one ended.
    fn opened(&self, mut position: Position) -> Position {
        let required = |at: &usize| !self.is_optional(*at);
        let end = |at: &usize| self.operations[*at].end;
        let mut deadline = position.open.iter().filter(|at| required(at)).map(end).min().unwrap_or(u64::MAX);
        while let Some(operation) = self.operations.get(position.next).filter(|it| it.start < deadline) {
            if required(&position.next) {
                deadline = deadline.min(operation.end);
            }
            position.open.push(position.next);
            position.next += 1;
        }
        position
    }

    fn is_done(&self, position: &Position) -> bool {
        position.next == self.operations.len() && position.open.iter().all(|at| self.is_optional(*at))
    }

    /// Pushes the positions after each possible next effect, the most likely one last.
    fn push_next(&self, position: &Position, stack: &mut Vec<Position>) {
        let first = stack.len();
        let mut open = position.open.clone();
        open.sort_by_key(|at| (self.is_optional(*at), self.operations[*at].end));
        for at in open.into_iter().rev() {
            let Some(state) = self.effect(&self.operations[at], position.state) else { continue };
            let start = self.operations[at].start;
            // A request that ended before this one started can have no effect after it.
            let stays = |other: &usize| *other != at && self.operations[*other].end > start;
            let open: Vec<usize> = position.open.iter().copied().filter(stays).collect();
            let is_neutral = state == position.state && open.len() + 1 == position.open.len();
            let after = self.opened(Position { state, open, next: position.next });
            if is_neutral {
                // It changes nothing for the other requests, so no other order needs to be tried.
                stack.truncate(first);
                stack.push(after);
                return;
            }
            stack.push(after);
        }
    }

    /// The state after a request, if its outcome is possible in this state.
    fn effect(&self, operation: &Operation, state: State) -> Option<State> {
        let matches = |expect: Option<u64>| {
            let current = state.content.and_then(|content| self.versions.revision(content));
            state.content.is_some() && (expect.is_none() || expect == current)
        };
        let conflicts =
            |expect: Option<u64>| state.content.is_some() && (expect.is_none() || !matches(expect));
        let is_present = state.content.is_some();
        match (operation.request, operation.outcome) {
            (Request::Create { value }, Outcome::Version(_) | Outcome::Unknown) => {
                if is_present {
                    return None;
                }
                self.written(state, Content { value, patch: 0 }, operation.outcome)
            }
            (Request::Update { value, expect }, Outcome::Version(_) | Outcome::Unknown) => {
                if !matches(expect) {
                    return None;
                }
                self.written(state, Content { value, patch: 0 }, operation.outcome)
            }
            (Request::Patch { value: patch, expect }, Outcome::Version(_) | Outcome::Unknown) => {
                if !matches(expect) {
                    return None;
                }
                self.written(state, Content { patch, ..state.content? }, operation.outcome)
            }
            (Request::Delete { expect }, Outcome::Deleted | Outcome::Unknown) => {
                if !matches(expect) {
                    return None;
                }
                let revision = self.versions.deletion(state.content?).unwrap_or(state.revision + 1);
                (revision > state.revision).then_some(State { content: None, revision })
            }
            (Request::Get, Outcome::Version(version)) => {
                (state.content == Some(version.content)).then_some(state)
            }
            (Request::Create { .. }, Outcome::AlreadyExists) => is_present.then_some(state),
            (
                Request::Get | Request::Update { .. } | Request::Patch { .. } | Request::Delete { .. },
                Outcome::NotFound,
            ) => (!is_present).then_some(state),
            (
                Request::Update { expect, .. } | Request::Patch { expect, .. } | Request::Delete { expect },
                Outcome::Conflict,
            ) => conflicts(expect).then_some(state),
            _ => None,
        }
    }

    fn written(&self, state: State, content: Content, outcome: Outcome) -> Option<State> {
        if let Outcome::Version(Version { content: answered, .. }) = outcome
            && answered != content
        {
            return None;
        }
        // A watch has seen the deletion of this version, so it was not overwritten.
        if state.content.is_some_and(|old| self.versions.deletion(old).is_some()) {
            return None;
        }
        let revision = self.versions.revision(content).unwrap_or(state.revision + 1);
        (revision > state.revision).then_some(State { content: Some(content), revision })
    }
}
