//! `object!`: Kubernetes objects whose fields are checked at compile time.
//!
//! Owns what the macro expands to: one JSON text with everything that is literal, and a call for each expression. So
//! rustc has little to compile, however long the object is.

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
        // A block, since there may be several.
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
