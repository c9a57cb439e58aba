//! Serde attributes that the apply configuration has in common with the original struct.
//!
//! Renaming attributes are copied. Defaults are dropped, since every field is optional. Attributes that
//! change the representation of the struct are rejected, because a part of it would have no meaning.

use proc_macro2::TokenStream;
use quote::quote;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned as _;
use syn::{Attribute, Error, Meta, Token};

use super::path_of;

/// Attributes that serialize a struct other than as a map of its fields.
const OTHER_FORMS: &[&str] =
    &["transparent", "from", "try_from", "into", "tag", "content", "untagged", "remote"];

/// The serde attributes of a field.
#[derive(Default)]
pub(super) struct OfField {
    /// Renaming attributes, copied as written.
    pub(super) carried: Vec<TokenStream>,
    /// Never serialized.
    pub(super) skip: bool,
    pub(super) flatten: bool,
    /// The custom serialization function.
    pub(super) serialize: Option<TokenStream>,
    /// The custom deserialization function.
    pub(super) deserialize: Option<TokenStream>,
}

/// The container attributes to copy.
pub(super) fn container(attributes: &[Attribute]) -> Result<Vec<TokenStream>, Error> {
    let mut carried = Vec::new();
    for meta in metas(attributes)? {
        if meta.path().is_ident("rename_all") {
            carried.push(quote!(#meta));
        } else if let Some(form) = OTHER_FORMS.iter().find(|form| meta.path().is_ident(form)) {
            let what = format!(
                "ApplyConfiguration does not support `{form}`, because the struct is not serialized as its fields"
            );
            return Err(Error::new(meta.span(), what));
        }
    }
    Ok(carried)
}

pub(super) fn field(attributes: &[Attribute]) -> Result<OfField, Error> {
    let mut field = OfField::default();
    for meta in metas(attributes)? {
        let name = meta.path().get_ident().map(ToString::to_string).unwrap_or_default();
        match name.as_str() {
            "rename" | "alias" | "skip_deserializing" => field.carried.push(quote!(#meta)),
            "skip" | "skip_serializing" => field.skip = true,
            "flatten" => field.flatten = true,
            "with" => {
                if let Some(module) = path_of(&meta)? {
                    field.serialize = Some(quote!(#module::serialize));
                    field.deserialize = Some(quote!(#module::deserialize));
                }
            }
            "serialize_with" => field.serialize = path_of(&meta)?,
            "deserialize_with" => field.deserialize = path_of(&meta)?,
            _ => {}
        }
    }
    Ok(field)
}

fn metas(attributes: &[Attribute]) -> Result<Vec<Meta>, Error> {
    let mut metas = Vec::new();
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("serde")) {
        metas.extend(attribute.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)?);
    }
    Ok(metas)
}
