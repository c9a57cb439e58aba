//! `#[derive(ApplyConfiguration)]`: a struct whose fields may all be left out, for server-side apply.
//!
//! Owns the struct that is emitted beside the derived one, and the link from a kind to it. On the wire both have the
//! same names; what changes those is carried over, and what changes the form is refused.

mod field;
mod serde;

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned as _;
use syn::{Attribute, Error, Expr, ExprLit, Fields, Ident, Item, ItemStruct, Lit, Meta, Path, Token};

use self::field::Field;
use crate::register::documentation;

pub(crate) fn expand(item: TokenStream) -> TokenStream {
    partial(item).unwrap_or_else(|error| error.to_compile_error())
}

fn partial(item: TokenStream) -> Result<TokenStream, Error> {
    let ItemStruct { attrs, vis, ident, generics, fields, .. } = match syn::parse2(item)? {
        Item::Struct(item) => item,
        other => {
            let what = "an apply configuration leaves fields out, so only a struct can have one: \
                        a field of this type is applied as a whole";
            return Err(Error::new(other.span(), what));
        }
    };
    let Fields::Named(fields) = fields else {
        let what =
            "an apply configuration leaves fields out by their names: only a struct with names can have one";
        return Err(Error::new(ident.span(), what));
    };
    if !generics.params.is_empty() {
        return Err(Error::new(
            generics.span(),
            "a struct with generic parameters has no apply configuration",
        ));
    }
    if let Some(attribute) = attrs.iter().find(|attribute| attribute.path().is_ident("apply")) {
        return Err(Error::new(attribute.span(), "#[apply(nested)] goes on a field"));
    }
    let carried = serde::container(&attrs)?;
    let name = format_ident!("{ident}Apply", span = Span::call_site());
    let fields: Vec<Field<'_>> =
        fields.named.iter().filter_map(|field| Field::read(field).transpose()).collect::<Result<_, _>>()?;
    let members = fields.iter().map(|field| field.member(&name));
    let setters = fields.iter().map(Field::setter);
    let forms = fields.iter().map(Field::forms);
    let about =
        format!("The fields of [`{ident}`] that one manager means: what is not set is left to others.");
    let root = root(&attrs, &vis, &name)?;
    Ok(quote! {
        #[doc = #about]
        #[derive(
            ::core::clone::Clone,
            ::core::fmt::Debug,
            ::core::default::Default,
            ::core::cmp::PartialEq,
            ::kubewright::serde::Serialize,
            ::kubewright::serde::Deserialize,
        )]
        #[serde(crate = "::kubewright::serde" #(, #carried)*)]
        #vis struct #name {
            #(#members)*
        }

        impl #name {
            #(#setters)*
            #(#forms)*
        }

        impl ::kubewright::apply::ApplyConfiguration for #ident {
            type Partial = #name;
        }

        #root
    })
}

/// A struct that kube's derive makes a kind of has a configuration of the whole object too.
fn root(attributes: &[Attribute], vis: &syn::Visibility, spec: &Ident) -> Result<TokenStream, Error> {
    let (mut kind, mut root, mut status) = (None, None, None);
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("kube")) {
        for meta in attribute.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)? {
            let path = meta.path();
            if path.is_ident("kind") {
                kind = text(&meta);
            } else if path.is_ident("root") {
                root = text(&meta);
            } else if path.is_ident("status") {
                status = path_of(&meta)?;
            } else if path.is_ident("no_spec") {
                return Err(Error::new(path.span(), "a kind without `spec` has no apply configuration"));
            }
        }
    }
    let Some(kind) = root.or(kind) else { return Ok(TokenStream::new()) };
    let object = Ident::new(&kind, Span::call_site());
    let configuration = format_ident!("{object}Apply", span = Span::call_site());
    let status = status.map_or_else(
        || quote!(::kubewright::apply::NoStatus),
        |status| quote!(<#status as ::kubewright::apply::ApplyConfiguration>::Partial),
    );
    let about = format!("What one manager means of a [`{object}`]: what is not set is left to others.");
    Ok(quote! {
        #[doc = #about]
        #vis type #configuration = ::kubewright::apply::Configuration<#object>;

        impl ::kubewright::apply::Configured for #object {
            type Spec = #spec;
            type Status = #status;
        }
    })
}

/// The text of `key = "text"`.
fn text(meta: &Meta) -> Option<String> {
    literal(meta).map(syn::LitStr::value)
}

fn literal(meta: &Meta) -> Option<&syn::LitStr> {
    match meta {
        Meta::NameValue(pair) => match &pair.value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text),
            _ => None,
        },
        _ => None,
    }
}

/// The path of `key = "path"` or `key = path`.
fn path_of(meta: &Meta) -> Result<Option<TokenStream>, Error> {
    if let Some(text) = literal(meta) {
        let path: Path = text.parse()?;
        return Ok(Some(quote!(#path)));
    }
    Ok(match meta {
        Meta::NameValue(pair) => {
            let value = &pair.value;
            Some(quote!(#value))
        }
        _ => None,
    })
}

/// What a field says of itself, for its twin.
fn documented(attributes: &[Attribute]) -> TokenStream {
    let lines: Vec<&Attribute> = documentation(attributes).collect();
    if lines.is_empty() {
        return quote!(#[doc = "As in the derived struct."]);
    }
    quote!(#(#lines)*)
}
