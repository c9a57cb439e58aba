//! Renders a project to its files, and plans the file changes between two project states.
//!
//! Everything here is pure. [`render()`] creates all files from PROJECT. A command changes the project, and
//! [`Plan::new`] computes the changes to the files on disk: user changes are merged, and conflicts are
//! reported before anything is written. No marker comments are needed in user files.

pub(crate) mod add;
pub(crate) mod base;
mod code;
mod dependency;
mod fixtures;
mod foreign;
pub(crate) mod from_crd;
mod kinds;
mod manifests;
mod merge;
pub(crate) mod names;
mod plan;
mod render;
mod samples;
mod template;
mod update;
mod versions;
pub(crate) mod webhooks;

pub(crate) use dependency::{Dependency, REPOSITORY};
pub(crate) use foreign::{adopt, builtin};
pub(crate) use manifests::watched;
pub(crate) use plan::{Plan, Step, diff};
pub(crate) use render::{Options, Rendered, Rendering, render};
pub(crate) use update::{Outcome, Update};

use add::Changed;

/// Both renderings of a change. New files may be derived from files on disk.
pub(crate) fn renderings<E>(
    changed: &Changed,
    options: &Options,
    mut disk: impl FnMut(&str) -> Result<Option<String>, E>,
) -> Result<(Rendering, Rendering), E> {
    let (mut before, mut after) = (render(&changed.before, options), render(&changed.after, options));
    if let Some(copied) = &changed.copied {
        versions::copy(&changed.after, copied, (&mut before, &mut after), &mut disk)?;
    }
    fixtures::copy(&before, &mut after, &mut disk)?;
    Ok((before, after))
}

#[cfg(test)]
mod tests;
