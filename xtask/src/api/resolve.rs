//! Name resolution across the crates: follows `use`, `pub use` and globs to the items that they name.

use syn::{Item, UseTree};

use super::sources::Crate;

/// The parsed crates. The first is the facade.
pub(super) struct Crates(pub(super) Vec<Crate>);

/// A module of one of the crates: the index of the crate, and the path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) of: usize,
    pub(super) module: Vec<String>,
}

/// What a name refers to. A name can refer to several, such as a module and a macro.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found {
    Module(Place),
    /// The index in the items of the module.
    Item(Place, usize),
    /// An item of another crate, by its path.
    Foreign(String),
}

/// One name of a `use` declaration.
pub(super) struct Import {
    /// The path, with `crate`, `self` and `super` as written.
    pub(super) path: Vec<String>,
    /// The imported name; `None` for a glob and for `as _`.
    pub(super) name: Option<String>,
    pub(super) is_glob: bool,
}

/// The names that a `use` declaration imports.
pub(super) fn imports(tree: &UseTree) -> Vec<Import> {
    fn walk(tree: &UseTree, path: &mut Vec<String>, found: &mut Vec<Import>) {
        match tree {
            UseTree::Path(it) => {
                path.push(it.ident.to_string());
                walk(&it.tree, path, found);
                path.pop();
            }
            UseTree::Name(it) if it.ident == "self" => {
                found.push(Import { path: path.clone(), name: path.last().cloned(), is_glob: false });
            }
            UseTree::Name(it) => {
                let name = it.ident.to_string();
                let path = [path.clone(), vec![name.clone()]].concat();
                found.push(Import { path, name: Some(name), is_glob: false });
            }
            UseTree::Rename(it) => {
                let name = it.rename.to_string();
                let path = [path.clone(), vec![it.ident.to_string()]].concat();
                found.push(Import { path, name: (name != "_").then_some(name), is_glob: false });
            }
            UseTree::Glob(_) => found.push(Import { path: path.clone(), name: None, is_glob: true }),
            UseTree::Group(group) => group.items.iter().for_each(|it| walk(it, path, found)),
        }
    }
    let mut found = Vec::new();
    walk(tree, &mut Vec::new(), &mut found);
    found
}

impl Crates {
    pub(super) fn module(&self, place: &Place) -> Option<&super::sources::Module> {
        self.0[place.of].modules.get(&place.module)
    }

    /// What a path refers to in a module.
    pub(super) fn resolve(&self, place: &Place, path: &[String]) -> Vec<Found> {
        self.resolve_within(place, path, 0)
    }

    fn resolve_within(&self, place: &Place, path: &[String], depth: usize) -> Vec<Found> {
        let Some((first, rest)) = path.split_first() else { return vec![Found::Module(place.clone())] };
        // A cycle of globs.
        if depth > 16 {
            return Vec::new();
        }
        let starts = match first.as_str() {
            "crate" => vec![Found::Module(Place { of: place.of, module: Vec::new() })],
            "self" => vec![Found::Module(place.clone())],
            "super" => {
                let (_, module) =
                    place.module.split_last().map_or((None, &[][..]), |(last, rest)| (Some(last), rest));
                vec![Found::Module(Place { of: place.of, module: module.to_vec() })]
            }
            name => {
                let local = self.lookup(place, name, depth + 1);
                match self.0.iter().position(|it| it.name == name) {
                    Some(of) if local.is_empty() => vec![Found::Module(Place { of, module: Vec::new() })],
                    _ if local.is_empty() => return vec![Found::Foreign(path.join("::"))],
                    _ => local,
                }
            }
        };
        let mut found = Vec::new();
        for start in starts {
            match (start, rest) {
                (start, []) => found.push(start),
                (Found::Module(inner), [name]) => found.extend(self.lookup(&inner, name, depth + 1)),
                (Found::Module(inner), rest) => found.extend(self.descend(&inner, rest, depth + 1)),
                (Found::Foreign(foreign), rest) => {
                    found.push(Found::Foreign(format!("{foreign}::{}", rest.join("::"))));
                }
                // A variant or an associated item.
                (Found::Item(..), _) => {}
            }
        }
        found
    }

    /// Like [`Self::resolve_within`], for the rest of a path.
    fn descend(&self, place: &Place, path: &[String], depth: usize) -> Vec<Found> {
        let Some((first, rest)) = path.split_first() else { return vec![Found::Module(place.clone())] };
        let modules = self.lookup(place, first, depth).into_iter();
        modules
            .flat_map(|it| match it {
                Found::Module(inner) if rest.is_empty() => vec![Found::Module(inner)],
                Found::Module(inner) => self.descend(&inner, rest, depth + 1),
                other if rest.is_empty() => vec![other],
                _ => Vec::new(),
            })
            .collect()
    }

    /// What a name refers to in a module, whatever its visibility.
    fn lookup(&self, place: &Place, name: &str, depth: usize) -> Vec<Found> {
        let Some(module) = self.module(place) else { return Vec::new() };
        let mut found = Vec::new();
        let child = Place { of: place.of, module: [place.module.clone(), vec![name.to_owned()]].concat() };
        if self.module(&child).is_some() {
            found.push(Found::Module(child));
        }
        let items = module.items.iter().enumerate();
        found.extend(
            items
                .filter(|(_, item)| self::name(item).is_some_and(|it| it == name))
                .map(|(index, _)| Found::Item(place.clone(), index)),
        );
        if place.module.is_empty() {
            found.extend(self.exported_macro(place.of, name));
        }
        for item in &module.items {
            let Item::Use(used) = item else { continue };
            for import in imports(&used.tree) {
                let is_named = import.name.as_deref() == Some(name);
                // `use object::object` in the module of the same name.
                if is_named && import.path != [name] {
                    found.extend(self.resolve_within(place, &import.path, depth + 1));
                } else if import.is_glob && depth <= 16 {
                    for module in self.resolve_within(place, &import.path, depth + 1) {
                        if let Found::Module(module) = module {
                            found.extend(self.lookup(&module, name, depth + 1));
                        }
                    }
                }
            }
        }
        found.dedup();
        found
    }

    /// A `#[macro_export]` macro, which is an item of the crate's root.
    fn exported_macro(&self, of: usize, name: &str) -> Option<Found> {
        self.0[of].modules.iter().find_map(|(path, module)| {
            let is_it = |item: &Item| match item {
                Item::Macro(it) => {
                    let exported = it.attrs.iter().any(|attribute| attribute.path().is_ident("macro_export"));
                    exported && it.ident.as_ref().is_some_and(|ident| ident == name)
                }
                _ => false,
            };
            let index = module.items.iter().position(is_it)?;
            Some(Found::Item(Place { of, module: path.clone() }, index))
        })
    }
}

/// The name of an item. `None` for uses, impls and macros.
pub(super) fn name(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Const(it) => &it.ident,
        Item::Enum(it) => &it.ident,
        Item::Fn(it) => &it.sig.ident,
        Item::Static(it) => &it.ident,
        Item::Struct(it) => &it.ident,
        Item::Trait(it) => &it.ident,
        Item::Type(it) => &it.ident,
        Item::Union(it) => &it.ident,
        _ => return None,
    };
    Some(ident.to_string())
}
