//! The lines of the list: the exported items of the facade, their fields, variants, methods and impls.
//!
//! Each item is listed once, under the shortest path that exports it; further paths are `use` lines.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use proc_macro2::TokenStream;
use quote::quote;
use syn::punctuated::Punctuated;
use syn::{Attribute, Fields, ImplItem, Item, ItemImpl, Path, Token, TraitItem, Type, Visibility};

use super::print::tokens;
use super::resolve::{Crates, Found, Place, imports};
use super::sources::is_hidden;

/// All lines, sorted.
pub(super) fn lines(crates: &Crates) -> Vec<String> {
    let exports = exports(crates);
    let mut lines = BTreeSet::new();
    // The shortest path comes first.
    let mut listed: BTreeMap<(Place, usize), String> = BTreeMap::new();
    for (path, found) in &exports {
        match found {
            Found::Module(_) => {
                lines.insert(format!("pub mod {path}"));
            }
            Found::Foreign(foreign) => {
                lines.insert(format!("pub use {foreign} as {path}"));
            }
            Found::Item(place, index) => match listed.get(&(place.clone(), *index)) {
                Some(first) => {
                    lines.insert(format!("pub use {first} as {path}"));
                }
                None => {
                    listed.insert((place.clone(), *index), path.clone());
                }
            },
        }
    }
    for ((place, index), path) in &listed {
        let Some(module) = crates.module(place) else { continue };
        item(&module.items[*index], path, &mut lines);
    }
    for (of, parsed) in crates.0.iter().enumerate() {
        for (path, module) in &parsed.modules {
            let place = Place { of, module: path.clone() };
            let impls = module.items.iter().filter_map(|item| match item {
                Item::Impl(it) => Some(it),
                _ => None,
            });
            for block in impls {
                if let Some(name) = self_type(crates, &place, block, &listed) {
                    implementation(block, &name, &mut lines);
                }
            }
        }
    }
    lines.into_iter().collect()
}

/// What the facade exports, by path, breadth first.
fn exports(crates: &Crates) -> Vec<(String, Found)> {
    let root = Place { of: 0, module: Vec::new() };
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    let mut queue = VecDeque::from([(crates.0[0].name.clone(), root)]);
    while let Some((path, place)) = queue.pop_front() {
        let Some(module) = crates.module(&place) else { continue };
        if !seen.insert((path.clone(), place.clone())) {
            continue;
        }
        let children = crates.0[place.of].modules.iter().filter(|(child, inner)| {
            inner.is_public && child.len() == place.module.len() + 1 && child.starts_with(&place.module)
        });
        for (child, _) in children {
            let name = child.last().cloned().unwrap_or_default();
            let inner = Place { of: place.of, module: child.clone() };
            found.push((format!("{path}::{name}"), Found::Module(inner.clone())));
            queue.push_back((format!("{path}::{name}"), inner));
        }
        for (index, item) in module.items.iter().enumerate() {
            if is_public_item(item)
                && let Some(name) = super::resolve::name(item)
            {
                found.push((format!("{path}::{name}"), Found::Item(place.clone(), index)));
            }
            let Item::Use(used) = item else { continue };
            if !matches!(used.vis, Visibility::Public(_)) || is_hidden(&used.attrs) {
                continue;
            }
            for import in imports(&used.tree) {
                let targets = crates.resolve(&place, &import.path);
                if import.is_glob {
                    // The names of a glob are those of the module.
                    queue.extend(targets.into_iter().filter_map(|target| match target {
                        Found::Module(inner) => Some((path.clone(), inner)),
                        _ => None,
                    }));
                    continue;
                }
                let name = import.name.unwrap_or_else(|| "_".to_owned());
                for target in targets {
                    if let Found::Module(inner) = &target {
                        queue.push_back((format!("{path}::{name}"), inner.clone()));
                    }
                    found.push((format!("{path}::{name}"), target));
                }
            }
        }
        // `#[macro_export]` macros of the facade itself.
        if path == crates.0[0].name {
            for (child, inner) in &crates.0[0].modules {
                for (index, item) in inner.items.iter().enumerate() {
                    if let Item::Macro(it) = item
                        && let Some(ident) = &it.ident
                        && it.attrs.iter().any(|attribute| attribute.path().is_ident("macro_export"))
                    {
                        let place = Place { of: 0, module: child.clone() };
                        found.push((format!("{path}::{ident}"), Found::Item(place, index)));
                    }
                }
            }
        }
    }
    found
}

fn is_public_item(item: &Item) -> bool {
    let (visibility, attributes) = match item {
        Item::Const(it) => (&it.vis, &it.attrs),
        Item::Enum(it) => (&it.vis, &it.attrs),
        Item::Fn(it) => (&it.vis, &it.attrs),
        Item::Static(it) => (&it.vis, &it.attrs),
        Item::Struct(it) => (&it.vis, &it.attrs),
        Item::Trait(it) => (&it.vis, &it.attrs),
        Item::Type(it) => (&it.vis, &it.attrs),
        _ => return false,
    };
    matches!(visibility, Visibility::Public(_)) && !is_hidden(attributes)
}

fn item(item: &Item, path: &str, lines: &mut BTreeSet<String>) {
    match item {
        Item::Const(it) => {
            lines.insert(format!("pub const {path}: {}", tokens(&it.ty)));
        }
        Item::Static(it) => {
            lines.insert(format!("pub static {path}: {}", tokens(&it.ty)));
        }
        Item::Type(it) => {
            lines.insert(format!("pub type {path}{} = {}", tokens(&it.generics), tokens(&it.ty)));
        }
        Item::Fn(it) if is_proc_macro(&it.attrs) => {
            lines.insert(format!("pub proc macro {path}"));
        }
        Item::Fn(it) => {
            lines.insert(format!("pub {}", signature(&it.sig, path)));
        }
        Item::Macro(_) => {
            lines.insert(format!("pub macro {path}!"));
        }
        Item::Struct(it) => {
            let where_clause = &it.generics.where_clause;
            let head =
                format!("pub struct {path}{}{}", tokens(&it.generics), prefixed(&tokens(where_clause)));
            lines.insert(exhaustive(&it.attrs, head));
            derives(&it.attrs, path, lines);
            fields(&it.fields, path, true, lines);
        }
        Item::Enum(it) => {
            lines.insert(exhaustive(&it.attrs, format!("pub enum {path}{}", tokens(&it.generics))));
            derives(&it.attrs, path, lines);
            for variant in it.variants.iter().filter(|it| !is_hidden(&it.attrs)) {
                let name = format!("{path}::{}", variant.ident);
                if let Fields::Unnamed(unnamed) = &variant.fields {
                    let types: Vec<String> = unnamed.unnamed.iter().map(|field| tokens(&field.ty)).collect();
                    lines.insert(format!("pub variant {name}({})", types.join(", ")));
                } else {
                    lines.insert(format!("pub variant {name}"));
                    fields(&variant.fields, &name, false, lines);
                }
            }
        }
        Item::Trait(it) => {
            let bounds = &it.supertraits;
            let bounds = if bounds.is_empty() { String::new() } else { format!(": {}", tokens(bounds)) };
            lines.insert(format!("pub trait {path}{}{bounds}", tokens(&it.generics)));
            for part in &it.items {
                match part {
                    TraitItem::Fn(part) if !is_hidden(&part.attrs) => {
                        let provided = if part.default.is_some() { " { .. }" } else { "" };
                        let name = format!("{path}::{}", part.sig.ident);
                        lines.insert(format!("pub {}{provided}", signature(&part.sig, &name)));
                    }
                    TraitItem::Type(part) => {
                        let bounds = &part.bounds;
                        let bounds =
                            if bounds.is_empty() { String::new() } else { format!(": {}", tokens(bounds)) };
                        lines.insert(format!("pub type {path}::{}{bounds}", part.ident));
                    }
                    TraitItem::Const(part) => {
                        lines.insert(format!("pub const {path}::{}: {}", part.ident, tokens(&part.ty)));
                    }
                    _ => {}
                }
            }
        }
        _ => {}
    }
}

fn is_proc_macro(attributes: &[Attribute]) -> bool {
    let names = ["proc_macro", "proc_macro_attribute", "proc_macro_derive"];
    attributes.iter().any(|it| names.iter().any(|name| it.path().is_ident(name)))
}

fn exhaustive(attributes: &[Attribute], head: String) -> String {
    let open = attributes.iter().any(|it| it.path().is_ident("non_exhaustive"));
    if open { format!("{head} #[non_exhaustive]") } else { head }
}

fn fields(fields: &Fields, path: &str, with_visibility: bool, lines: &mut BTreeSet<String>) {
    for (index, field) in fields.iter().enumerate() {
        let is_public = !with_visibility || matches!(field.vis, Visibility::Public(_));
        if is_public && !is_hidden(&field.attrs) {
            let name = field.ident.as_ref().map_or_else(|| index.to_string(), ToString::to_string);
            lines.insert(format!("pub field {path}.{name}: {}", tokens(&field.ty)));
        }
    }
}

fn derives(attributes: &[Attribute], path: &str, lines: &mut BTreeSet<String>) {
    for attribute in attributes.iter().filter(|it| it.path().is_ident("derive")) {
        let parsed = attribute.parse_args_with(Punctuated::<Path, Token![,]>::parse_terminated);
        for derived in parsed.into_iter().flatten() {
            let name = derived.segments.last().map(|it| it.ident.to_string()).unwrap_or_default();
            lines.insert(format!("impl {name} for {path}"));
        }
    }
}

/// A signature with the full path of the function.
fn signature(signature: &syn::Signature, path: &str) -> String {
    let name = signature.ident.to_string();
    let text = tokens(&signature);
    text.replacen(&format!("fn {name}"), &format!("fn {path}"), 1)
}

/// The listed path of the type that a block implements.
fn self_type(
    crates: &Crates,
    place: &Place,
    block: &ItemImpl,
    listed: &BTreeMap<(Place, usize), String>,
) -> Option<String> {
    let Type::Path(of) = &*block.self_ty else { return None };
    let path: Vec<String> = of.path.segments.iter().map(|it| it.ident.to_string()).collect();
    crates.resolve(place, &path).into_iter().find_map(|found| match found {
        Found::Item(place, index) => listed.get(&(place, index)).cloned(),
        _ => None,
    })
}

fn implementation(block: &ItemImpl, path: &str, lines: &mut BTreeSet<String>) {
    if is_hidden(&block.attrs) {
        return;
    }
    let Type::Path(of) = &*block.self_ty else { return };
    let arguments = of.path.segments.last().map(|it| tokens(&it.arguments)).unwrap_or_default();
    if let Some((implemented, _)) = &block.trait_ {
        let generics = tokens(&block.generics);
        let conditions = prefixed(&tokens(&block.generics.where_clause));
        lines.insert(format!("impl{generics} {} for {path}{arguments}{conditions}", tokens(implemented)));
        return;
    }
    // The arguments of a generic type matter only if the block is for some of them.
    let generics: Vec<String> = block.generics.params.iter().map(|it| tokens(&name_only(it))).collect();
    let own = if arguments.is_empty() || arguments == format!("<{}>", generics.join(", ")) {
        ""
    } else {
        &arguments
    };
    for part in &block.items {
        match part {
            ImplItem::Fn(it) if matches!(it.vis, Visibility::Public(_)) && !is_hidden(&it.attrs) => {
                let name = format!("{path}{own}::{}", it.sig.ident);
                lines.insert(format!("pub {}", signature(&it.sig, &name)));
            }
            ImplItem::Const(it) if matches!(it.vis, Visibility::Public(_)) => {
                lines.insert(format!("pub const {path}{own}::{}: {}", it.ident, tokens(&it.ty)));
            }
            _ => {}
        }
    }
}

/// A generic parameter without its bounds.
fn name_only(parameter: &syn::GenericParam) -> TokenStream {
    match parameter {
        syn::GenericParam::Lifetime(it) => {
            let lifetime = &it.lifetime;
            quote!(#lifetime)
        }
        syn::GenericParam::Type(it) => {
            let ident = &it.ident;
            quote!(#ident)
        }
        syn::GenericParam::Const(it) => {
            let ident = &it.ident;
            quote!(#ident)
        }
    }
}

fn prefixed(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(" {text}") }
}
