//! The modules of a crate, parsed.
//!
//! Follows `mod name;` to its file. Test modules are left out; other `cfg`s are ignored, so the list is that of all
//! features.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use syn::{Attribute, Item, Visibility};

use crate::tidy::Files;

/// A parsed crate.
pub(super) struct Crate {
    /// The name in paths, such as `kubewright_runtime`.
    pub(super) name: String,
    /// Modules by path. The root has the empty path.
    pub(super) modules: BTreeMap<Vec<String>, Module>,
}

/// A parsed module.
#[derive(Default)]
pub(super) struct Module {
    /// Whether it is `pub` and not hidden in the documentation.
    pub(super) is_public: bool,
    /// Its items, without its child modules.
    pub(super) items: Vec<Item>,
}

impl Crate {
    /// Parses the package in `crates/<package>`.
    pub(super) fn parse(files: &Files, package: &str) -> Result<Self> {
        let mut parsed = Self { name: package.replace('-', "_"), modules: BTreeMap::new() };
        parsed.file(files, &format!("crates/{package}/src/lib.rs"), Vec::new(), true)?;
        Ok(parsed)
    }

    fn file(&mut self, files: &Files, path: &str, module: Vec<String>, is_public: bool) -> Result<()> {
        let text = files.text(path).with_context(|| format!("no file {path}"))?;
        let file = syn::parse_file(text).with_context(|| format!("parse {path}"))?;
        let is_public = is_public && !is_hidden(&file.attrs);
        // `lib.rs` and `a.rs` have their children in different folders.
        let folder = match path.strip_suffix("/lib.rs") {
            Some(folder) => folder.to_owned(),
            None => path.trim_end_matches(".rs").to_owned(),
        };
        self.items(files, &folder, module, is_public, file.items)
    }

    fn items(
        &mut self,
        files: &Files,
        folder: &str,
        module: Vec<String>,
        is_public: bool,
        items: Vec<Item>,
    ) -> Result<()> {
        let mut own = Module { is_public, items: Vec::new() };
        for item in items {
            let Item::Mod(child) = item else {
                own.items.push(item);
                continue;
            };
            if is_test(&child.attrs) {
                continue;
            }
            let name = child.ident.to_string();
            let is_public = matches!(child.vis, Visibility::Public(_)) && !is_hidden(&child.attrs);
            let (mut path, below) = (module.clone(), format!("{folder}/{name}"));
            path.push(name);
            match child.content {
                Some((_, items)) => self.items(files, &below, path, is_public, items)?,
                // A module with an alternative file has no public items.
                None if files.text(&format!("{below}.rs")).is_some() => {
                    self.file(files, &format!("{below}.rs"), path, is_public)?;
                }
                None => {}
            }
        }
        self.modules.insert(module, own);
        Ok(())
    }
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|it| it.path().is_ident("cfg") && super::print::tokens(&it.meta) == "cfg(test)")
}

/// Whether an item has `#[doc(hidden)]`.
pub(super) fn is_hidden(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|it| it.path().is_ident("doc") && super::print::tokens(&it.meta) == "doc(hidden)")
}
