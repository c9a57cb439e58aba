//! Resolves the kind of an `object!`.
//!
//! A kind is either in the table of built-in types or is a custom resource, given by its Rust type.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens as _, quote};
use syn::spanned::Spanned as _;
use syn::{Error, Ident, LitStr, Path};

use super::syntax::KindName;
use super::table::{self, Type};
use crate::nearest::nearest;

/// A kind and its Rust type.
pub(super) struct Kind {
    /// The built-in type. `None` for a custom resource.
    pub(super) builtin: Option<Type>,
    pub(super) rust: TokenStream,
    /// The name in messages.
    pub(super) name: String,
    pub(super) span: Span,
}

pub(super) fn resolve(name: &KindName) -> Result<Kind, Error> {
    match name {
        KindName::Versioned(version, kind) => by_version(version, kind),
        KindName::Path(path) => by_path(path),
    }
}

fn by_version(version: &LitStr, kind: &Ident) -> Result<Kind, Error> {
    let wanted = version.value();
    let wanted = if wanted.contains('/') { wanted } else { format!("/{wanted}") };
    let versions: Vec<Type> = candidates(None, &kind.to_string());
    let known: Vec<&str> = versions
        .iter()
        .filter_map(|ty| ty.group_version)
        .map(|known| known.strip_prefix('/').unwrap_or(known))
        .collect();
    let what = match known.as_slice() {
        [] => format!(
            "`{kind}` is not a built-in kind; for a custom resource, write its Rust type without an API version"
        ),
        known => format!("no `{kind}` in `{}`; it is in `{}`", version.value(), known.join("`, `")),
    };
    let found = versions.into_iter().find(|ty| ty.group_version == Some(&*wanted));
    builtin(found.ok_or_else(|| Error::new(version.span(), what))?, kind.span())
}

fn by_path(path: &Path) -> Result<Kind, Error> {
    let words: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let is_relative =
        path.leading_colon.is_none() && !matches!(words.first(), Some(&("crate" | "self" | "super")));
    let of_k8s_openapi = words.contains(&"k8s_openapi");
    let (package, kind) = match (words.as_slice(), is_relative) {
        ([kind], true) => (None, kind),
        ([version, kind], true) => (Some(format!(".{version}")), kind),
        ([package, version, kind], true) => (Some(format!("{package}.{version}")), kind),
        ([.., package, version, kind], _) if of_k8s_openapi => (Some(format!("{package}.{version}")), kind),
        _ => return Ok(custom(path)),
    };
    let mut found = candidates(package.as_deref(), kind);
    if found.len() > 1 {
        // Prefer the stable version of `v1` and `v1beta1`.
        if found.iter().filter(|ty| is_stable(ty)).count() == 1 {
            found.retain(is_stable);
        }
    }
    let span = path.segments.last().map_or_else(Span::call_site, |segment| segment.ident.span());
    if found.len() > 1 {
        let paths: Vec<String> = found.iter().map(|ty| format!("`{}`", ty.name.replace('.', "::"))).collect();
        return Err(Error::new(span, format!("`{kind}` is ambiguous; write {}", paths.join(" or "))));
    }
    match found.pop() {
        Some(ty) => builtin(ty, span),
        None => match package.filter(|package| is_package(package)) {
            Some(package) => Err(Error::new(span, unknown(&package, kind))),
            None => Ok(custom(path)),
        },
    }
}

/// The kinds with this name. A package that starts with a dot matches any group.
fn candidates(package: Option<&str>, kind: &str) -> Vec<Type> {
    let matches = |name: &&str| {
        let (of, short) = name.rsplit_once('.').unwrap_or_default();
        short == kind
            && package.is_none_or(|package| {
                if package.starts_with('.') { of.ends_with(package) } else { of == package }
            })
    };
    table::kinds().filter(matches).filter_map(table::find).collect()
}

fn is_package(package: &str) -> bool {
    table::kinds().any(|name| name.rsplit_once('.').is_some_and(|(of, _)| of == package))
}

fn unknown(package: &str, kind: &str) -> String {
    let of_package = |name: &&str| name.rsplit_once('.').is_some_and(|(of, _)| of == package);
    let known = table::kinds().filter(of_package).filter_map(|name| name.rsplit('.').next());
    let path = package.replace('.', "::");
    match nearest(kind, known) {
        Some(near) => format!("unknown kind `{kind}`; did you mean `{path}::{near}`?"),
        None => format!("no built-in kind `{kind}` in `{path}`"),
    }
}

fn is_stable(ty: &Type) -> bool {
    let version = ty.group_version.and_then(|it| it.rsplit('/').next()).unwrap_or_default();
    version.strip_prefix('v').is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
}

fn builtin(ty: Type, span: Span) -> Result<Kind, Error> {
    if !ty.is_object() {
        let what = format!("`{}` has no ObjectMeta, so it cannot be applied", ty.short());
        return Err(Error::new(span, what));
    }
    let mut words = ty.name.split('.').map(|word| Ident::new(word, span));
    let (package, version, kind) = (words.next(), words.next(), words.next());
    let root = match ty.name.split('.').next() {
        Some("apiextensions") => quote!(apiextensions_apiserver::pkg::apis),
        Some("apiregistration") => quote!(kube_aggregator::pkg::apis),
        _ => quote!(api),
    };
    let rust = quote!(::kubewright::k8s_openapi::#root::#package::#version::#kind);
    Ok(Kind { name: ty.short().to_owned(), rust, span, builtin: Some(ty) })
}

fn custom(path: &Path) -> Kind {
    let name = path.segments.last().map(|segment| segment.ident.to_string()).unwrap_or_default();
    Kind { builtin: None, rust: path.to_token_stream(), name, span: path.span() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(text: &str) -> Result<String, String> {
        let path = syn::parse_str(text).unwrap();
        let kind = by_path(&path).map_err(|error| error.to_string())?;
        Ok(kind.builtin.map_or_else(|| "custom".to_owned(), |ty| ty.name.to_owned()))
    }

    #[test]
    fn a_path_resolves_to_a_builtin_kind_or_a_custom_resource() {
        for (path, name) in [
            ("Deployment", "apps.v1.Deployment"),
            ("apps::v1::Deployment", "apps.v1.Deployment"),
            ("v1::Deployment", "apps.v1.Deployment"),
            ("k8s_openapi::api::apps::v1::Deployment", "apps.v1.Deployment"),
            ("kubewright::k8s_openapi::api::core::v1::Event", "core.v1.Event"),
            ("v2::HorizontalPodAutoscaler", "autoscaling.v2.HorizontalPodAutoscaler"),
            ("ResourceClaim", "resource.v1.ResourceClaim"),
            ("resource::v1beta1::ResourceClaim", "resource.v1beta1.ResourceClaim"),
            ("CustomResourceDefinition", "apiextensions.v1.CustomResourceDefinition"),
            ("Guestbook", "custom"),
            ("crate::Deployment", "custom"),
            ("crate::api::v1::Deployment", "custom"),
            ("api::v1::Guestbook", "custom"),
        ] {
            assert_eq!(resolved(path).as_deref(), Ok(name), "{path}");
        }
    }

    #[test]
    fn unknown_and_ambiguous_kinds_are_errors() {
        for (path, error) in [
            ("Event", "`Event` is ambiguous; write `core::v1::Event` or `events::v1::Event`"),
            ("apps::v1::Deploymnt", "unknown kind `Deploymnt`; did you mean `apps::v1::Deployment`?"),
            ("PodList", "`PodList` has no ObjectMeta, so it cannot be applied"),
        ] {
            assert_eq!(resolved(path).unwrap_err(), error);
        }
    }
}
