//! `#[olm(...)]`: how an OLM bundle describes a kind and its operator.

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::punctuated::Punctuated;
use syn::{Attribute, Error, Expr, ExprLit, ItemStruct, Lit, Meta, Token};

use crate::arguments::{Arguments, Shape};
use crate::register::{refused, register, texts};

const SHAPE: Shape = Shape {
    name: "olm",
    keys: &["display_name", "description", "icon", "capabilities", "categories"],
    foreign: &[("displayName", "write `display_name`")],
};

/// The capability levels of operators.
const LEVELS: [&str; 5] =
    ["Basic Install", "Seamless Upgrades", "Full Lifecycle", "Deep Insights", "Auto Pilot"];

pub(crate) fn expand(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let read = || -> Result<(Texts, Kind), Error> { Ok((Texts::read(arguments)?, Kind::of(&item)?)) };
    match read() {
        Ok((texts, kind)) => register("olm", item, |place| texts.declared(&kind, &place)),
        Err(error) => refused(&error, &item),
    }
}

struct Texts {
    single: Vec<(TokenStream, String)>,
    categories: Vec<String>,
}

impl Texts {
    fn read(tokens: TokenStream) -> Result<Self, Error> {
        let mut arguments = Arguments::read(tokens, &SHAPE)?;
        if arguments.is_empty() {
            let what = "#[olm] needs arguments: `#[olm(display_name = \"Web Shop\", icon = \"icon.svg\")]`";
            return Err(Error::new(Span::call_site(), what));
        }
        let mut single = Vec::new();
        for (key, field) in [
            ("display_name", quote!(display_name)),
            ("description", quote!(description)),
            ("icon", quote!(icon)),
        ] {
            single.extend(arguments.text(key).map(|word| (field, word.text)));
        }
        let level = arguments.choice("capabilities", &LEVELS);
        single.extend(level.map(|level| (quote!(capabilities), level.to_owned())));
        // Names of categories have spaces and `&`.
        let categories = arguments.text("categories").map(|word| word.text).unwrap_or_default();
        let categories = categories.split(',').map(str::trim).filter(|it| !it.is_empty());
        let categories = categories.map(str::to_owned).collect();
        arguments.finish()?;
        Ok(Self { single, categories })
    }

    fn declared(&self, kind: &Kind, place: &TokenStream) -> TokenStream {
        let single =
            self.single.iter().map(|(field, text)| quote!(#field: ::std::string::String::from(#text),));
        let categories = texts(self.categories.iter().map(String::as_str));
        let Kind { group, kind } = kind;
        quote! {
            ::kubewright::declare::Declared::Olm(::kubewright::declare::Olm {
                item: #place,
                group: ::std::string::String::from(#group),
                kind: ::std::string::String::from(#kind),
                #(#single)*
                categories: #categories,
                ..::core::default::Default::default()
            })
        }
    }
}

/// Group and kind in `#[kube(...)]`.
struct Kind {
    group: String,
    kind: String,
}

impl Kind {
    fn of(item: &TokenStream) -> Result<Self, Error> {
        let missing = || {
            let what = "#[olm] is only allowed on a struct with `#[kube(group = \"...\", kind = \"...\")]`";
            Error::new(Span::call_site(), what)
        };
        let item: ItemStruct = syn::parse2(item.clone()).map_err(|_| missing())?;
        let (mut group, mut kind) = (None, None);
        for attribute in item.attrs.iter().filter(|attribute| attribute.path().is_ident("kube")) {
            for meta in metas(attribute)? {
                if meta.path().is_ident("group") {
                    group = text(&meta);
                } else if meta.path().is_ident("kind") {
                    kind = text(&meta);
                }
            }
        }
        Ok(Self { group: group.ok_or_else(missing)?, kind: kind.ok_or_else(missing)? })
    }
}

fn metas(attribute: &Attribute) -> Result<Punctuated<Meta, Token![,]>, Error> {
    attribute.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)
}

fn text(meta: &Meta) -> Option<String> {
    match meta {
        Meta::NameValue(pair) => match &pair.value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use quote::quote;

    use super::{SHAPE, expand};

    #[test]
    fn every_key_is_documented() {
        crate::arguments::assert_documented(&SHAPE);
    }

    #[test]
    fn the_kind_is_that_of_the_struct() {
        let item = quote! {
            #[derive(CustomResource)]
            #[kube(group = "sales.example.com", version = "v1", kind = "Order")]
            struct OrderSpec {}
        };
        let made =
            expand(quote!(display_name = "Web Order", categories = "Database, AI/Machine Learning"), item);
        let made = made.to_string();
        for part in ["\"sales.example.com\"", "\"Order\"", "\"Web Order\"", "\"AI/Machine Learning\""] {
            assert!(made.contains(part), "{part}: {made}");
        }
    }

    #[test]
    fn wrong_items_and_levels_are_rejected() {
        let order = quote!(
            #[kube(group = "a.example.com", kind = "Order")]
            struct OrderSpec;
        );
        for (arguments, item, expected) in [
            (
                quote!(display_name = "a"),
                quote!(
                    struct Order;
                ),
                "only allowed on a struct with",
            ),
            (quote!(), order.clone(), "needs arguments"),
            (quote!(capabilities = "Basic"), order.clone(), "unknown value `Basic` of `capabilities`"),
            (quote!(name = "a"), order, "unknown key `name`"),
        ] {
            let made = expand(arguments, item).to_string();
            assert!(made.contains("compile_error") && made.contains(expected), "{made}");
        }
    }
}
