//! `object!`: Kubernetes objects whose fields are checked at compile time.
//!
//! Expands to one JSON string with all literals and one call per expression. This keeps compile times low for
//! large objects.

mod check;
mod kind;
mod literal;
mod syntax;
mod table;

use proc_macro2::TokenStream;
use quote::quote;
use syn::Error;

use self::check::Checked;
use self::syntax::Input;

pub(crate) fn expand(input: TokenStream) -> TokenStream {
    parsed(input).unwrap_or_else(|error| {
        let error = error.to_compile_error();
        // A block, since there may be several errors.
        quote!({ #error })
    })
}

fn parsed(input: TokenStream) -> Result<TokenStream, Error> {
    let Input { kind, body } = syn::parse2(input)?;
    let kind = kind::resolve(&kind)?;
    let mut checked = Checked::default();
    let value = checked.object(&kind, &body);
    let Checked { holes, keys, errors, .. } = checked;
    if let Some(errors) = errors {
        return Err(errors);
    }
    let (rust, text) = (&kind.rust, value.to_string());
    let build = if kind.builtin.is_some() { quote!(builtin) } else { quote!(custom) };
    Ok(quote! {
        ::kubewright::object::template::#build::<#rust>(#text, &mut [#(#holes,)* #(#keys,)*])
    })
}
