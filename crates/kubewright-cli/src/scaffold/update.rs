//! Updates generated files of a project with a three-way merge of every file: the scaffold, and the trees that
//! later commands generate.
//!
//! The base is the recorded rendering ([`Base`]). User changes stay, scaffold changes are merged, and
//! conflicts get conflict markers. Files that the user removed or wrote are left alone.

use std::collections::BTreeSet;

use super::base::Base;
use super::merge::merge_marked;
use super::plan::Step;
use super::render::Rendering;

/// A planned update.
#[derive(Debug, Default)]
pub(crate) struct Update {
    pub(crate) steps: Vec<Step>,
    /// The outcome for each file that the new scaffold changes.
    pub(crate) outcomes: Vec<(String, Outcome)>,
}

/// The outcome for a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Added,
    Updated,
    /// User changes are kept.
    Merged,
    /// Number of conflicts.
    Conflict(usize),
    Removed,
    /// The user removed it.
    LeftOut,
    /// It is the user's: the scaffold did not write it, or no longer has it.
    Kept,
}

impl Update {
    /// Plans an update of the files on disk from a base to a new rendering. `record` is the path of the base.
    pub(crate) fn new<E>(
        base: &Base,
        after: &Rendering,
        record: &str,
        mut disk: impl FnMut(&str) -> Result<Option<String>, E>,
    ) -> Result<Self, E> {
        let mut update = Self::default();
        let mut theirs = BTreeSet::new();
        let label = format!("kubewright {}", env!("CARGO_PKG_VERSION"));
        let new = |id: &String| after.get(id).filter(|file| !file.generated && !file.owned);
        let ids: BTreeSet<&String> = base.files.keys().chain(after.keys()).collect();
        for id in ids {
            match (base.files.get(id), new(id)) {
                (Some(old), Some(new)) if old.text == new.text && old.path == new.path => {}
                (Some(old), Some(new)) => {
                    let Some(user) = disk(&old.path)? else {
                        update.outcomes.push((new.path.clone(), Outcome::LeftOut));
                        continue;
                    };
                    let there = if old.path == new.path { Some(user.clone()) } else { disk(&new.path)? };
                    let (text, outcome) = if user == old.text || user == new.text {
                        (new.text.clone(), Outcome::Updated)
                    } else {
                        match merge_marked(&old.text, &user, &new.text, &label) {
                            (text, 0) => (text, Outcome::Merged),
                            (text, marked) => (text, Outcome::Conflict(marked)),
                        }
                    };
                    if old.path != new.path {
                        if there.is_some() {
                            update.outcomes.push((old.path.clone(), Outcome::Kept));
                            continue;
                        }
                        update.step(&old.path, Some(user), None);
                    }
                    if there.as_ref() != Some(&text) {
                        update.step(&new.path, there, Some(text));
                        update.outcomes.push((new.path.clone(), outcome));
                    }
                }
                (None, Some(new)) => match disk(&new.path)? {
                    None => {
                        update.step(&new.path, None, Some(new.text.clone()));
                        update.outcomes.push((new.path.clone(), Outcome::Added));
                    }
                    Some(text) if text == new.text => {}
                    Some(_) => {
                        theirs.insert(new.path.clone());
                        update.outcomes.push((new.path.clone(), Outcome::Kept));
                    }
                },
                (Some(old), None) => match disk(&old.path)? {
                    Some(text) if text == old.text => {
                        update.step(&old.path, Some(text), None);
                        update.outcomes.push((old.path.clone(), Outcome::Removed));
                    }
                    Some(_) => update.outcomes.push((old.path.clone(), Outcome::Kept)),
                    None => {}
                },
                (None, None) => {}
            }
        }
        let recorded = Base::of(after, |file| !theirs.contains(&file.path)).to_text();
        let there = disk(record)?;
        if there.as_ref() != Some(&recorded) {
            update.step(record, there, Some(recorded));
        }
        Ok(update)
    }

    /// Adds a file that only kubewright writes. It is written last.
    pub(crate) fn record(&mut self, path: &str, there: Option<String>, text: &str) {
        self.step(path, there, Some(text.to_owned()));
    }

    /// The total number of conflicts.
    pub(crate) fn conflicts(&self) -> usize {
        let marked = self.outcomes.iter().map(|(_, outcome)| match outcome {
            Outcome::Conflict(marked) => *marked,
            _ => 0,
        });
        marked.sum()
    }

    fn step(&mut self, path: &str, before: Option<String>, after: Option<String>) {
        self.steps.push(Step { path: path.to_owned(), before, after });
    }
}

#[cfg(test)]
mod tests;
