//! `#[kubewright::main]`: turns an async function with a manager parameter into a program's `main`.
//!
//! Checks the signature. The generated code only calls the facade.

use proc_macro::TokenStream;
use quote::quote;
use syn::parse::Nothing;
use syn::spanned::Spanned as _;
use syn::{Error, FnArg, ItemFn, ReturnType, Signature};

pub(crate) fn main(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let Ok(function) = syn::parse::<ItemFn>(item.clone()) else {
        // rustc has already parsed the item, so this is a valid item that is not a function.
        let what = "#[kubewright::main] is only allowed on a function: `async fn main(manager: Manager) -> Result<()>`";
        return refused(&Error::new(quote!().span(), what), item);
    };
    let arguments = syn::parse::<Nothing>(arguments)
        .map_err(|error| Error::new(error.span(), "#[kubewright::main] takes no arguments"));
    match arguments.and_then(|_| check(&function.sig)) {
        Ok(()) => program(&function),
        Err(error) => {
            let ItemFn { vis, sig: Signature { ident, .. }, .. } = &function;
            // With a `main` function, rustc reports only this error.
            refused(&error, quote!(#vis fn #ident() {}).into())
        }
    }
}

fn check(signature: &Signature) -> Result<(), Error> {
    let Signature { asyncness, generics, inputs, output, paren_token, .. } = signature;
    if asyncness.is_none() {
        let what = "the main function must be async: write `async fn`";
        return Err(Error::new(signature.fn_token.span, what));
    }
    if !generics.params.is_empty() {
        return Err(Error::new(generics.span(), "the main function must not have generic parameters"));
    }
    let mut inputs = inputs.iter();
    match inputs.next() {
        Some(FnArg::Typed(_)) => {}
        Some(FnArg::Receiver(receiver)) => {
            return Err(Error::new(receiver.span(), "the main function must not be a method"));
        }
        None => {
            let what = "the main function must take the manager: write `manager: Manager`";
            return Err(Error::new(paren_token.span.join(), what));
        }
    }
    if let Some(second) = inputs.next() {
        let what = "the main function must take only the manager";
        return Err(Error::new(second.span(), what));
    }
    if matches!(output, ReturnType::Default) {
        let what = "the main function must return a Result: add `-> Result<()>`";
        return Err(Error::new(paren_token.span.close(), what));
    }
    Ok(())
}

fn program(function: &ItemFn) -> TokenStream {
    let ItemFn { vis, sig: Signature { ident, .. }, .. } = function;
    quote! {
        #vis fn #ident() -> ::std::process::ExitCode {
            #function
            ::kubewright::operator!().run(#ident)
        }
    }
    .into()
}

fn refused(error: &Error, instead: TokenStream) -> TokenStream {
    let mut emitted = TokenStream::from(error.to_compile_error());
    emitted.extend(instead);
    emitted
}
