//! `#[derive(ApplyConfiguration)]`: generates a struct with optional fields for server-side apply.
//!
//! The generated struct serializes to the same field names as the original. Serde attributes that rename
//! fields are copied; attributes that change the representation are rejected.

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
            let what = "only a struct can derive ApplyConfiguration; \
                        a field of this type is applied as a whole";
            return Err(Error::new(other.span(), what));
        }
    };
    let Fields::Named(fields) = fields else {
        let what = "only a struct with named fields can derive ApplyConfiguration";
        return Err(Error::new(ident.span(), what));
    };
    if !generics.params.is_empty() {
        return Err(Error::new(generics.span(), "ApplyConfiguration does not support generic parameters"));
    }
    if let Some(attribute) = attrs.iter().find(|attribute| attribute.path().is_ident("apply")) {
        return Err(Error::new(attribute.span(), "#[apply(nested)] is only allowed on a field"));
    }
    let carried = serde::container(&attrs)?;
    let name = format_ident!("{ident}Apply", span = Span::call_site());
    let fields: Vec<Field<'_>> =
        fields.named.iter().filter_map(|field| Field::read(field).transpose()).collect::<Result<_, _>>()?;
    let members = fields.iter().map(|field| field.member(&name));
    let setters = fields.iter().map(Field::setter);
    let forms = fields.iter().map(Field::forms);
    let about =
        format!("The fields of [`{ident}`] that a field manager applies. Unset fields are not applied.");
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

/// Generates the apply configuration of the whole object for a struct with kube's `CustomResource` derive.
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
                return Err(Error::new(path.span(), "ApplyConfiguration needs a kind with `spec`"));
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
    let about =
        format!("The fields of a [`{object}`] that a field manager applies. Unset fields are not applied.");
    Ok(quote! {
        #[doc = #about]
        #vis type #configuration = ::kubewright::apply::Configuration<#object>;

        impl ::kubewright::apply::Configured for #object {
            type Spec = #spec;
            type Status = #status;
        }
    })
}

/// The value of `key = "text"`.
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

/// The value of `key = "path"` or `key = path`.
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

/// The documentation of the original field.
fn documented(attributes: &[Attribute]) -> TokenStream {
    let lines: Vec<&Attribute> = documentation(attributes).collect();
    if lines.is_empty() {
        return quote!(#[doc = "Same as in the original struct."]);
    }
    quote!(#(#lines)*)
}
