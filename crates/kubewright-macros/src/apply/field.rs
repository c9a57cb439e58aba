//! One field of an apply configuration: its type, serde attributes and setter.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens as _, format_ident, quote};
use syn::ext::IdentExt as _;
use syn::punctuated::Punctuated;
use syn::{Attribute, Error, GenericArgument, Ident, Meta, PathArguments, PathSegment, Token, Type};

use super::documented;
use super::serde::{self, OfField};
use crate::nearest::did_you_mean;

/// Container types. The last type parameter is the element type.
const HOLDERS: &[&str] =
    &["Option", "Box", "Arc", "Rc", "Vec", "VecDeque", "BTreeMap", "HashMap", "IndexMap"];
const LISTS: &[&str] = &["Vec", "VecDeque"];
const MAPS: &[&str] = &["BTreeMap", "HashMap", "IndexMap"];
/// Setters take these types directly. With `impl Into<u16>`, rustc would infer `i32` for `80`.
const PRIMITIVES: &[&str] = &[
    "bool", "char", "f32", "f64", "i8", "i16", "i32", "i64", "i128", "isize", "u8", "u16", "u32", "u64",
    "u128", "usize",
];

pub(super) struct Field<'f> {
    attributes: &'f [Attribute],
    /// Has the span of the macro call, so that rustc does not report unused generated setters.
    name: Ident,
    serde: OfField,
    nested: bool,
    /// The type without `Option`.
    ty: &'f Type,
    /// Whether the original field is an `Option`.
    optional: bool,
}

impl<'f> Field<'f> {
    /// Returns `None` if the field is never serialized.
    pub(super) fn read(field: &'f syn::Field) -> Result<Option<Self>, Error> {
        let nested = is_nested(&field.attrs)?;
        let serde = serde::field(&field.attrs)?;
        let Some(ident) = field.ident.as_ref().filter(|_| !serde.skip) else { return Ok(None) };
        let inner = held_by(&field.ty, &["Option"]);
        let read = Self {
            attributes: &field.attrs,
            name: at_call_site(ident),
            serde,
            nested,
            ty: inner.unwrap_or(&field.ty),
            optional: inner.is_some(),
        };
        if read.serde.flatten && !nested && held_by(read.ty, MAPS).is_none() {
            let what = "a flattened struct is applied field by field; write #[apply(nested)] on the field, \
                        and #[derive(ApplyConfiguration)] on its struct";
            return Err(Error::new(ident.span(), what));
        }
        if nested && (read.serde.serialize.is_some() || read.serde.deserialize.is_some()) {
            let what = "a field with its own serialization is applied as a whole; remove #[apply(nested)]";
            return Err(Error::new(ident.span(), what));
        }
        Ok(Some(read))
    }

    /// The type of the value in the generated struct.
    fn value(&self) -> TokenStream {
        if self.nested { partial_of(self.ty) } else { self.ty.to_token_stream() }
    }

    /// The field declaration in the generated struct `owner`.
    pub(super) fn member(&self, owner: &Ident) -> TokenStream {
        let (name, value, carried) = (&self.name, self.value(), &self.serde.carried);
        let about = documented(self.attributes);
        let conditions = self.conditions();
        if self.serde.flatten {
            return quote! {
                #about
                #(#conditions)*
                #[serde(flatten #(, #carried)*)]
                pub #name: #value,
            };
        }
        let plain = name.unraw();
        let write = self.serde.serialize.as_ref().map(|path| {
            let path = if self.optional { path.to_string() } else { format!("{owner}::serialize_{plain}") };
            quote!(, serialize_with = #path)
        });
        let read = self.serde.deserialize.as_ref().map(|path| {
            let path = if self.optional { path.to_string() } else { format!("{owner}::deserialize_{plain}") };
            quote!(, deserialize_with = #path)
        });
        quote! {
            #about
            #(#conditions)*
            #[serde(default, skip_serializing_if = "::core::option::Option::is_none" #write #read #(, #carried)*)]
            pub #name: ::core::option::Option<#value>,
        }
    }

    /// Wrappers that call the field's own `serialize_with` and `deserialize_with` functions for an `Option`.
    pub(super) fn forms(&self) -> TokenStream {
        let (value, plain, conditions) =
            (self.value(), self.name.unraw(), self.conditions().collect::<Vec<_>>());
        let write = self.serde.serialize.as_ref().filter(|_| !self.optional).map(|path| {
            let function = format_ident!("serialize_{plain}", span = Span::call_site());
            quote! {
                #(#conditions)*
                fn #function<S: ::kubewright::serde::Serializer>(
                    value: &::core::option::Option<#value>,
                    serializer: S,
                ) -> ::core::result::Result<S::Ok, S::Error> {
                    match value {
                        ::core::option::Option::Some(value) => #path(value, serializer),
                        ::core::option::Option::None => serializer.serialize_none(),
                    }
                }
            }
        });
        let read = self.serde.deserialize.as_ref().filter(|_| !self.optional).map(|path| {
            let function = format_ident!("deserialize_{plain}", span = Span::call_site());
            quote! {
                #(#conditions)*
                fn #function<'de, D: ::kubewright::serde::Deserializer<'de>>(
                    deserializer: D,
                ) -> ::core::result::Result<::core::option::Option<#value>, D::Error> {
                    #path(deserializer).map(::core::option::Option::Some)
                }
            }
        });
        quote!(#write #read)
    }

    pub(super) fn setter(&self) -> TokenStream {
        let (name, value) = (&self.name, self.value());
        let (takes, made) = if let Some(item) = held_by(self.ty, LISTS) {
            let item = into(item, self.nested);
            let each = item.convert(quote!(item));
            let takes = item.takes;
            (
                quote!(impl ::core::iter::IntoIterator<Item = #takes>),
                quote!(#name.into_iter().map(|item| #each).collect()),
            )
        } else if let Some((key, item)) = self.entries() {
            let (key, item) = (into(key, false), into(item, self.nested));
            let (of_key, of_item) = (key.convert(quote!(key)), item.convert(quote!(item)));
            let (key, item) = (key.takes, item.takes);
            (
                quote!(impl ::core::iter::IntoIterator<Item = (#key, #item)>),
                quote!(#name.into_iter().map(|(key, item)| (#of_key, #of_item)).collect()),
            )
        } else if self.nested {
            (quote!(impl ::core::convert::Into<#value>), quote!(#name.into()))
        } else {
            let whole = into(self.ty, false);
            let made = whole.convert(quote!(#name));
            (whole.takes, made)
        };
        let made = if self.serde.flatten { made } else { quote!(::core::option::Option::Some(#made)) };
        let about = documented(self.attributes);
        let conditions = self.conditions();
        quote! {
            #about
            #(#conditions)*
            #[must_use]
            pub fn #name(mut self, #name: #takes) -> Self {
                self.#name = #made;
                self
            }
        }
    }

    fn entries(&self) -> Option<(&'f Type, &'f Type)> {
        match types_of(last(self.ty)?, MAPS)?.as_slice() {
            [key, item] => Some((*key, *item)),
            _ => None,
        }
    }

    fn conditions(&self) -> impl Iterator<Item = &'f Attribute> {
        self.attributes.iter().filter(|attribute| attribute.path().is_ident("cfg"))
    }
}

fn at_call_site(ident: &Ident) -> Ident {
    let mut ident = ident.clone();
    ident.set_span(Span::call_site());
    ident
}

/// The argument type of a setter, and whether it needs `into()`.
struct Into {
    takes: TokenStream,
    converts: bool,
}

impl Into {
    fn convert(&self, value: TokenStream) -> TokenStream {
        if self.converts { quote!(#value.into()) } else { value }
    }
}

fn into(ty: &Type, nested: bool) -> Into {
    let primitive = matches!(ty, Type::Path(path) if PRIMITIVES.iter().any(|name| path.path.is_ident(name)));
    let target = if nested { partial_of(ty) } else { ty.to_token_stream() };
    if primitive {
        return Into { takes: target, converts: false };
    }
    Into { takes: quote!(impl ::core::convert::Into<#target>), converts: true }
}

/// Whether the field has `#[apply(nested)]`.
fn is_nested(attributes: &[Attribute]) -> Result<bool, Error> {
    let mut nested = false;
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("apply")) {
        for meta in attribute.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)? {
            if !matches!(&meta, Meta::Path(path) if path.is_ident("nested")) {
                let word = meta.path().to_token_stream().to_string();
                let what = format!("unknown option `{word}`{}", did_you_mean(&word, ["nested"]));
                return Err(Error::new_spanned(meta, what));
            }
            nested = true;
        }
    }
    Ok(nested)
}

/// The apply configuration of a type, inside its containers.
fn partial_of(ty: &Type) -> TokenStream {
    if let (Type::Path(path), Some(segment)) = (ty, last(ty))
        && let Some(types) = types_of(segment, HOLDERS)
        && let Some((held, others)) = types.split_last()
    {
        let (colon, ident) = (&path.path.leading_colon, &segment.ident);
        let before =
            path.path.segments.iter().take(path.path.segments.len() - 1).map(|segment| &segment.ident);
        let held = partial_of(held);
        return quote!(#colon #(#before::)* #ident<#(#others,)* #held>);
    }
    quote!(<#ty as ::kubewright::apply::ApplyConfiguration>::Partial)
}

/// The element type of `ty`, if `ty` is one of these containers.
fn held_by<'t>(ty: &'t Type, holders: &[&str]) -> Option<&'t Type> {
    types_of(last(ty)?, holders)?.pop()
}

fn last(ty: &Type) -> Option<&PathSegment> {
    match ty {
        Type::Path(path) if path.qself.is_none() => path.path.segments.last(),
        _ => None,
    }
}

fn types_of<'t>(segment: &'t PathSegment, holders: &[&str]) -> Option<Vec<&'t Type>> {
    if !holders.iter().any(|holder| segment.ident == holder) {
        return None;
    }
    let PathArguments::AngleBracketed(arguments) = &segment.arguments else { return None };
    let types = arguments.args.iter().filter_map(|argument| match argument {
        GenericArgument::Type(ty) => Some(ty),
        _ => None,
    });
    Some(types.collect())
}
