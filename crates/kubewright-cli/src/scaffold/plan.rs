//! Plans the file changes for a project change.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::base;
use super::merge::merge;
use super::render::{Rendered, Rendering};

/// The steps, in order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) steps: Vec<Step>,
    /// Messages for the user.
    pub(crate) notes: Vec<String>,
}

/// A file change.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) path: String,
    /// The current text; `None` if the file is new.
    pub(crate) before: Option<String>,
    /// The new text; `None` if the file is removed.
    pub(crate) after: Option<String>,
}

/// Files whose user changes would be lost.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub(crate) struct Refusal(pub(crate) Vec<String>);

impl Plan {
    /// Plans the change from one rendering to another. `disk` reads a file. With `force`, conflicting user
    /// changes are overwritten.
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
        // PROJECT is written last, so that an interrupted command can be repeated.
        plan.steps.sort_by_key(|step| (step.path == "PROJECT", step.after.is_none(), step.path.clone()));
        Ok(Ok(plan))
    }

    fn add(&mut self, new: &Rendered, there: Option<String>, force: bool, refused: &mut Vec<String>) {
        match there {
            Some(text) if text == new.text => {}
            Some(_) if new.yields && !force => {
                self.notes.push(format!("{} already exists and is kept", new.path));
            }
            Some(_) if !force => refused.push(format!("{} already exists", new.path)),
            before => self.step(&new.path, before, Some(new.text.clone())),
        }
    }

    fn take_away(&mut self, old: &Rendered, there: Option<String>, force: bool, refused: &mut Vec<String>) {
        match there {
            None => {}
            // Generated files have no user changes.
            Some(text) if text == old.text || old.generated || force => {
                self.step(&old.path, Some(text), None);
            }
            Some(_) => refused.push(format!("{} would be removed, but has local changes", old.path)),
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
            // Restore files that the user removed but the change needs. PROJECT belongs to the tool.
            None => new.text.clone(),
            Some(_) if new.owned => new.text.clone(),
            Some(text) if new.generated && text != old.text && text != new.text => {
                // Similar lines would be merged wrongly; `kubewright manifests` generates the file from the
                // compiled operator.
                self.notes.push(format!(
                    "{} no longer matches the templates: run `kubewright manifests`",
                    old.path
                ));
                return;
            }
            Some(text) => match merge(&old.text, text, &new.text) {
                Ok(text) => text,
                Err(_) if force => new.text.clone(),
                Err(line) => {
                    let path = &old.path;
                    refused.push(format!("{path} has local changes near line {line} that cannot be merged"));
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
            refused.push(format!("{} already exists; cannot move {} there", new.path, old.path));
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

/// Steps as a unified diff, without records of renderings, which repeat the other files.
pub(crate) fn diff(steps: &[Step]) -> String {
    let mut text = String::new();
    for Step { path, before, after } in steps.iter().filter(|step| !base::is_record(&step.path)) {
        let name = |side: &str, there: &Option<String>| {
            if there.is_some() { format!("{side}/{path}") } else { "/dev/null".to_owned() }
        };
        let (old, new) = (before.as_deref().unwrap_or_default(), after.as_deref().unwrap_or_default());
        let lines = similar::TextDiff::from_lines(old, new);
        let _ = write!(text, "{}", lines.unified_diff().header(&name("a", before), &name("b", after)));
    }
    text
}
