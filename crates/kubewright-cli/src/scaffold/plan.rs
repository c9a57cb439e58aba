//! What a change of a project means for the files on disk.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::base;
use super::merge::merge;
use super::render::{Rendered, Rendering};

/// What is to be done, in this order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) steps: Vec<Step>,
    /// What the user should know of it.
    pub(crate) notes: Vec<String>,
}

/// A file that changes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) path: String,
    /// What is there; nothing, where it is new.
    pub(crate) before: Option<String>,
    /// What is to be there; nothing, where it goes.
    pub(crate) after: Option<String>,
}

/// Why nothing is done: files that would lose what the user wrote.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub(crate) struct Refusal(pub(crate) Vec<String>);

impl Plan {
    /// Plans the way from one state of a project to another. `disk` tells what is in a file; `force` means that what
    /// stands in the way may be lost.
    pub(crate) fn new<E>(
        before: &Rendering,
        after: &Rendering,
        mut disk: impl FnMut(&str) -> Result<Option<String>, E>,
        force: bool,
    ) -> Result<Result<Self, Refusal>, E> {
        let mut plan = Self::default();
        let mut refused = Vec::new();
        let ids: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        for id in ids {
            match (before.get(id), after.get(id)) {
                (None, Some(new)) => {
                    let there = disk(&new.path)?;
                    plan.add(new, there, force, &mut refused);
                }
                (Some(old), None) => {
                    let there = disk(&old.path)?;
                    plan.take_away(old, there, force, &mut refused);
                }
                (Some(old), Some(new)) if old != new => {
                    let there = disk(&old.path)?;
                    let in_the_way = if old.path == new.path { None } else { disk(&new.path)? };
                    plan.change(old, new, there, in_the_way, force, &mut refused);
                }
                _ => {}
            }
        }
        if !refused.is_empty() {
            return Ok(Err(Refusal(refused)));
        }
        // A command that failed half-way is repeated: PROJECT says last that it is done.
        plan.steps.sort_by_key(|step| (step.path == "PROJECT", step.after.is_none(), step.path.clone()));
        Ok(Ok(plan))
    }

    fn add(&mut self, new: &Rendered, there: Option<String>, force: bool, refused: &mut Vec<String>) {
        match there {
            Some(text) if text == new.text => {}
            Some(_) if new.yields && !force => {
                self.notes.push(format!("{} is there already, and stays as it is", new.path));
            }
            Some(_) if !force => refused.push(format!("{} is there already", new.path)),
            before => self.step(&new.path, before, Some(new.text.clone())),
        }
    }

    fn take_away(&mut self, old: &Rendered, there: Option<String>, force: bool, refused: &mut Vec<String>) {
        match there {
            None => {}
            // What is generated is nobody's work.
            Some(text) if text == old.text || old.generated || force => {
                self.step(&old.path, Some(text), None);
            }
            Some(_) => refused.push(format!("{} has changes of yours, and would be removed", old.path)),
        }
    }

    fn change(
        &mut self,
        old: &Rendered,
        new: &Rendered,
        there: Option<String>,
        in_the_way: Option<String>,
        force: bool,
        refused: &mut Vec<String>,
    ) {
        let text = match there.as_deref() {
            // What the user removed, but is needed, is written again; PROJECT is the tool's alone.
            None => new.text.clone(),
            Some(_) if new.owned => new.text.clone(),
            Some(text) if new.generated && text != old.text && text != new.text => {
                // Lines that look alike would be merged wrongly; the compiled operator knows better.
                self.notes.push(format!(
                    "{} is not only of templates any more: run `kubewright manifests`",
                    old.path
                ));
                return;
            }
            Some(text) => match merge(&old.text, text, &new.text) {
                Ok(text) => text,
                Err(_) if force => new.text.clone(),
                Err(line) => {
                    let path = &old.path;
                    refused
                        .push(format!("{path} has changes of yours near line {line} that cannot be merged"));
                    return;
                }
            },
        };
        if old.path == new.path {
            if there.as_ref() != Some(&text) {
                self.step(&new.path, there, Some(text));
            }
            return;
        }
        if in_the_way.as_ref().is_some_and(|other| *other != text) && !force {
            refused.push(format!("{} is there already, and {} would become it", new.path, old.path));
            return;
        }
        self.step(&new.path, in_the_way, Some(text));
        if there.is_some() {
            self.step(&old.path, there, None);
        }
    }

    fn step(&mut self, path: &str, before: Option<String>, after: Option<String>) {
        self.steps.push(Step { path: path.to_owned(), before, after });
    }
}

/// Steps as a unified diff. The record of the scaffold repeats what the other files say, and is left out.
pub(crate) fn diff(steps: &[Step]) -> String {
    let mut text = String::new();
    for Step { path, before, after } in steps.iter().filter(|step| step.path != base::PATH) {
        let name = |side: &str, there: &Option<String>| {
            if there.is_some() { format!("{side}/{path}") } else { "/dev/null".to_owned() }
        };
        let (old, new) = (before.as_deref().unwrap_or_default(), after.as_deref().unwrap_or_default());
        let lines = similar::TextDiff::from_lines(old, new);
        let _ = write!(text, "{}", lines.unified_diff().header(&name("a", before), &name("b", after)));
    }
    text
}
