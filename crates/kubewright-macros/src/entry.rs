//! `#[kubewright::main]`: an asynchronous function of a manager becomes a program's `main`.
//!
//! Owns the shape of that function. What is emitted calls the facade, and has no logic of its own.

use proc_macro::TokenStream;
use quote::quote;
use syn::parse::Nothing;
use syn::spanned::Spanned as _;
use syn::{Error, FnArg, ItemFn, ReturnType, Signature};

pub(crate) fn main(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let Ok(function) = syn::parse::<ItemFn>(item.clone()) else {
        // The compiler has read the item before us, so that what is no function is something else that is right.
        let what = "#[kubewright::main] goes on a function: `async fn main(manager: Manager) -> Result<()>`";
        return refused(&Error::new(quote!().span(), what), item);
    };
    let arguments = syn::parse::<Nothing>(arguments)
        .map_err(|error| Error::new(error.span(), "#[kubewright::main] takes no arguments"));
    match arguments.and_then(|_| check(&function.sig)) {
        Ok(()) => program(&function),
        Err(error) => {
            let ItemFn { vis, sig: Signature { ident, .. }, .. } = &function;
            // With a `main` the compiler tells this error alone.
            refused(&error, quote!(#vis fn #ident() {}).into())
        }
    }
}

fn check(signature: &Signature) -> Result<(), Error> {
    let Signature { asyncness, generics, inputs, output, paren_token, .. } = signature;
    if asyncness.is_none() {
        let what = "an operator's main function waits: write `async fn`";
        return Err(Error::new(signature.fn_token.span, what));
    }
    if !generics.params.is_empty() {
        return Err(Error::new(generics.span(), "an operator's main function has no generic parameters"));
    }
    let mut inputs = inputs.iter();
    match inputs.next() {
        Some(FnArg::Typed(_)) => {}
        Some(FnArg::Receiver(receiver)) => {
            return Err(Error::new(receiver.span(), "an operator's main function is no method"));
        }
        None => {
            let what = "an operator's main function takes the manager: write `manager: Manager`";
            return Err(Error::new(paren_token.span.join(), what));
        }
    }
    if let Some(second) = inputs.next() {
        let what = "an operator's main function takes the manager, and nothing else";
        return Err(Error::new(second.span(), what));
    }
    if matches!(output, ReturnType::Default) {
        let what = "an operator's main function can fail: write `-> Result<()>` behind this";
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
