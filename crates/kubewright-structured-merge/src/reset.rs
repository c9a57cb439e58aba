//! Fields that an endpoint ignores on writes.
//!
//! The main endpoint ignores the status and the status endpoint ignores everything else. Ignored fields must
//! not become owned.

use super::compare::Comparison;
use super::set::{Pattern, Set};

/// The fields that an endpoint ignores.
#[derive(Debug, Clone, Default)]
pub struct Reset {
    filter: Filter,
    /// Applies to this API version only; `None` means all versions.
    only: Option<String>,
}

#[derive(Debug, Clone, Default)]
enum Filter {
    #[default]
    Nothing,
    /// These fields and their children.
    These(Set),
    /// All fields except these and their children.
    AllBut(Vec<Vec<Pattern>>),
}

impl Reset {
    /// Ignores these fields and their children.
    pub fn fields(paths: &[&[&str]]) -> Self {
        let filter = if paths.is_empty() { Filter::Nothing } else { Filter::These(Set::of_fields(paths)) };
        Self { filter, only: None }
    }

    /// Ignores all fields except these and their children. [`Reset::ANY`] matches any item of a list.
    pub fn all_but(paths: &[&[&'static str]]) -> Self {
        let pattern =
            |name: &&'static str| if *name == Self::ANY { Pattern::Any } else { Pattern::Field(name) };
        let patterns = paths.iter().map(|path| path.iter().map(pattern).collect()).collect();
        Self { filter: Filter::AllBut(patterns), only: None }
    }

    /// Matches any item of a list in [`Reset::all_but`].
    pub const ANY: &str = "*";

    /// Applies to objects of this API version only.
    #[must_use]
    pub fn only_in(mut self, api_version: &str) -> Self {
        self.only = Some(api_version.to_owned());
        self
    }

    pub(crate) fn filter(&self, api_version: &str, set: &mut Set) {
        if self.only.as_deref().is_some_and(|only| only != api_version) {
            return;
        }
        match &self.filter {
            Filter::Nothing => {}
            Filter::These(these) => {
                set.subtract_recursively(these);
            }
            Filter::AllBut(patterns) => {
                set.keep_matching(&patterns.iter().map(Vec::as_slice).collect::<Vec<_>>());
            }
        }
    }

    pub(crate) fn filter_all(&self, api_version: &str, changes: &mut Comparison) {
        for set in changes.each_mut() {
            self.filter(api_version, set);
        }
    }
}
