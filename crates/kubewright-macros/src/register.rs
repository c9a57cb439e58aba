//! Emits the registration of a declaration such as an RBAC rule.
//!
//! The item is unchanged. An unnamed constant next to it, or in the body of a function, registers a function
//! at link time. That function creates the declaration when the program collects declarations.

use proc_macro2::{Delimiter, Group, Span, TokenStream, TokenTree};
use quote::{ToTokens as _, quote};
use syn::{Attribute, Error, Item, Type};

/// Returns the item with its registration. `declared` creates the `Declared` value for a source location.
pub(crate) fn register(
    attribute: &str,
    item: TokenStream,
    declared: impl FnOnce(TokenStream) -> TokenStream,
) -> TokenStream {
    let (name, attributes, in_body) = match syn::parse2::<Item>(item.clone()) {
        Ok(Item::Fn(item)) => (item.sig.ident.to_string(), item.attrs, true),
        Ok(Item::Impl(item)) => (name_of(&item.self_ty), item.attrs, false),
        Ok(Item::Struct(item)) => (item.ident.to_string(), item.attrs, false),
        Ok(Item::Enum(item)) => (item.ident.to_string(), item.attrs, false),
        Ok(Item::Union(item)) => (item.ident.to_string(), item.attrs, false),
        Ok(Item::Trait(item)) => (item.ident.to_string(), item.attrs, false),
        Ok(Item::Mod(item)) => (item.ident.to_string(), item.attrs, false),
        // A constant is not supported: in an impl the registration would become an associated constant too.
        _ => {
            let what = format!(
                "#[{attribute}] is only allowed on an impl, a struct, an enum, a trait, a module or a function with a body"
            );
            return refused(&Error::new(Span::call_site(), what), &item);
        }
    };
    let registration = submit(&attributes, &declared(place(&name)));
    if in_body { into_body(item, registration) } else { quote!(#item #registration) }
}

/// An expression for the place of an item in the sources.
pub(crate) fn place(name: &str) -> TokenStream {
    quote! {
        ::kubewright::declare::Item {
            file: ::std::string::String::from(::core::file!()),
            line: ::core::line!(),
            path: ::std::string::String::from(::core::concat!(::core::module_path!(), "::", #name)),
        }
    }
}

/// A constant that registers a declaration at link time, under the same `cfg` as the item.
pub(crate) fn submit(attributes: &[Attribute], declared: &TokenStream) -> TokenStream {
    let conditions = attributes.iter().filter(|attribute| attribute.path().is_ident("cfg"));
    quote! {
        #(#conditions)*
        const _: () = {
            ::kubewright::declare::submit! {
                ::kubewright::declare::Declaration::new(|| #declared)
            }
        };
    }
}

/// The error and the unchanged item, so that there are no follow-up errors.
pub(crate) fn refused(error: &Error, item: &TokenStream) -> TokenStream {
    let error = error.to_compile_error();
    quote!(#error #item)
}

/// A list of strings.
pub(crate) fn texts<'t>(texts: impl IntoIterator<Item = &'t str>) -> TokenStream {
    let texts = texts.into_iter();
    quote!(::std::vec::Vec::from([#(::std::string::String::from(#texts)),*]))
}

/// Inserts the registration into a function's body. Next to a method it would become part of the impl.
fn into_body(function: TokenStream, registration: TokenStream) -> TokenStream {
    let mut tokens: Vec<TokenTree> = function.into_iter().collect();
    if let Some(TokenTree::Group(body)) = tokens.pop() {
        let inside = body.stream().into_iter().collect::<Vec<_>>();
        // Inner attributes `#![...]` of the function come first.
        let of_function = inside.chunks_exact(3).take_while(|chunk| is_inner_attribute(chunk)).count() * 3;
        let (first, rest) = inside.split_at(of_function);
        let stream = first.iter().cloned().chain(registration).chain(rest.iter().cloned()).collect();
        let mut body_with = Group::new(Delimiter::Brace, stream);
        body_with.set_span(body.span());
        tokens.push(TokenTree::Group(body_with));
    }
    tokens.into_iter().collect()
}

fn is_inner_attribute(tokens: &[TokenTree]) -> bool {
    matches!(
        tokens,
        [TokenTree::Punct(hash), TokenTree::Punct(bang), TokenTree::Group(_)]
            if hash.as_char() == '#' && bang.as_char() == '!'
    )
}

/// The type name of an impl without generics.
pub(crate) fn name_of(ty: &Type) -> String {
    match ty {
        Type::Path(path) => {
            let names: Vec<String> =
                path.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
            names.join("::")
        }
        Type::Reference(reference) => name_of(&reference.elem),
        other => other.to_token_stream().to_string(),
    }
}

/// The doc attributes of an item.
pub(crate) fn documentation(attributes: &[Attribute]) -> impl Iterator<Item = &Attribute> {
    attributes.iter().filter(|attribute| attribute.path().is_ident("doc"))
}
