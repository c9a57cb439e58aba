//! What the attributes of serde say, as far as a partial struct must say the same.
//!
//! Names are carried over. What has to do with absence is dropped, since every field may be absent here. What gives a
//! struct another form on the wire is refused: a part of that form has no meaning.

use proc_macro2::TokenStream;
use quote::quote;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned as _;
use syn::{Attribute, Error, Meta, Token};

use super::path_of;

/// Forms in which a struct is no map of its fields.
const OTHER_FORMS: &[&str] =
    &["transparent", "from", "try_from", "into", "tag", "content", "untagged", "remote"];

/// What a field says.
#[derive(Default)]
pub(super) struct OfField {
    /// Names, as they stand.
    pub(super) carried: Vec<TokenStream>,
    /// It is never sent.
    pub(super) skip: bool,
    /// Its own fields stand among those of the struct.
    pub(super) flatten: bool,
    /// How it is written, if in its own way.
    pub(super) serialize: Option<TokenStream>,
    /// How it is read, if in its own way.
    pub(super) deserialize: Option<TokenStream>,
}

/// What a container says that its twin must say too.
pub(super) fn container(attributes: &[Attribute]) -> Result<Vec<TokenStream>, Error> {
    let mut carried = Vec::new();
    for meta in metas(attributes)? {
        if meta.path().is_ident("rename_all") {
            carried.push(quote!(#meta));
        } else if let Some(form) = OTHER_FORMS.iter().find(|form| meta.path().is_ident(form)) {
            let what = format!(
                "with `{form}` the fields are not what is sent, so they cannot be left out one by one"
            );
            return Err(Error::new(meta.span(), what));
        }
    }
    Ok(carried)
}

/// What a field says.
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
