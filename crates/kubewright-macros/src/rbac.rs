//! `#[rbac(...)]`: an RBAC rule that the operator needs.
//!
//! Checks the keys of a rule and their combinations. `kubewright-manifests` builds roles from the rules.

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::Error;

use crate::arguments::{Arguments, Shape, Word};
use crate::kubernetes::{URL_VERBS, VERB_PREFIXES, VERBS, wrong_group, wrong_resource};
use crate::names::{is_dns_label, is_path_segment};
use crate::nearest::did_you_mean;
use crate::register::{refused, register, texts};

const SHAPE: Shape = Shape {
    name: "rbac",
    keys: &["groups", "resources", "resource_names", "verbs", "urls", "namespace", "role_name"],
    foreign: &[("non_resource_urls", "write `urls`"), ("api_groups", "write `groups`")],
};

pub(crate) fn expand(arguments: TokenStream, item: TokenStream) -> TokenStream {
    match Rule::read(arguments) {
        Ok(rule) => register("rbac", item, |place| rule.declared(&place)),
        Err(error) => refused(&error, &item),
    }
}

struct Rule {
    groups: Vec<String>,
    resources: Vec<String>,
    resource_names: Vec<String>,
    verbs: Vec<String>,
    urls: Vec<String>,
    namespace: String,
    role_name: String,
}

impl Rule {
    fn read(tokens: TokenStream) -> Result<Self, Error> {
        let mut arguments = Arguments::read(tokens, &SHAPE)?;
        if arguments.is_empty() {
            let what = "#[rbac] needs arguments: \
                        `#[rbac(groups = \"apps\", resources = \"deployments\", verbs = \"get, list, watch\")]`";
            return Err(Error::new(Span::call_site(), what));
        }
        let of_paths = arguments.key("urls").is_some();
        check_combinations(&mut arguments);
        let groups = groups(&mut arguments);
        let resources = resources(&mut arguments, groups.as_deref());
        let resource_names = arguments.words("resource_names", false);
        let verbs = verbs(&mut arguments, if of_paths { URL_VERBS } else { VERBS });
        let urls = urls(&mut arguments);
        let namespace = arguments.text_like(
            "namespace",
            is_dns_label,
            "namespace: use up to 63 lower-case letters, digits and `-`",
        );
        let role_name =
            arguments.text_like("role_name", is_path_segment, "role name: it must not contain `/` or `%`");
        arguments.finish()?;
        Ok(Self {
            groups: groups.unwrap_or_default(),
            resources: plain(resources),
            resource_names: plain(resource_names),
            verbs: plain(verbs),
            urls: plain(urls),
            namespace: namespace.map(|word| word.text).unwrap_or_default(),
            role_name: role_name.map(|word| word.text).unwrap_or_default(),
        })
    }

    fn declared(&self, place: &TokenStream) -> TokenStream {
        let lists = [
            (quote!(groups), &self.groups),
            (quote!(resources), &self.resources),
            (quote!(resource_names), &self.resource_names),
            (quote!(verbs), &self.verbs),
            (quote!(urls), &self.urls),
        ];
        let lists = lists.iter().filter(|(_, names)| !names.is_empty()).map(|(key, names)| {
            let names = texts(names.iter().map(String::as_str));
            quote!(#key: #names,)
        });
        let single = [(quote!(namespace), &self.namespace), (quote!(role_name), &self.role_name)];
        let single = single.iter().filter(|(_, text)| !text.is_empty());
        let single = single.map(|(key, text)| quote!(#key: ::std::string::String::from(#text),));
        quote! {
            ::kubewright::declare::Declared::Rule(::kubewright::declare::Rule {
                item: #place,
                #(#lists)*
                #(#single)*
                ..::core::default::Default::default()
            })
        }
    }
}

/// Checks required and conflicting keys.
fn check_combinations(arguments: &mut Arguments) {
    let key = |key| arguments.key(key);
    let (groups, resources, urls, verbs) = (key("groups"), key("resources"), key("urls"), key("verbs"));
    let (names, namespace) = (key("resource_names"), key("namespace"));
    if let (Some(urls), Some(_)) = (urls, resources) {
        arguments.wrong(urls, "a rule cannot have both resources and urls; write two attributes");
    } else if let (Some(_), Some(extra)) = (urls, groups.or(names)) {
        arguments.wrong(extra, "not allowed with urls; remove it");
    } else if let (Some(resources), None) = (resources, groups) {
        let what = "`groups` is missing: write `groups = \"apps\"`, or `groups = \"\"` for the core group";
        arguments.wrong(resources, what);
    } else if let (None, None, Some(extra)) = (resources, urls, groups.or(names)) {
        arguments.wrong(extra, "`resources` is missing: write `resources = \"deployments\"`");
    } else if resources.is_none() && urls.is_none() {
        arguments.wrong(Span::call_site(), "a rule needs `groups` and `resources`, or `urls`");
    }
    if verbs.is_none() {
        arguments.wrong(Span::call_site(), "`verbs` is missing: write `verbs = \"get, list, watch\"`");
    }
    if let (Some(_), Some(namespace)) = (urls, namespace) {
        arguments.wrong(namespace, "urls are only allowed in a ClusterRole; remove `namespace`");
    }
}

/// API groups. The core group is the empty string.
pub(crate) fn groups(arguments: &mut Arguments) -> Option<Vec<String>> {
    let mut words = arguments.words("groups", true)?;
    check(arguments, &words, wrong_group);
    for word in &mut words {
        if word.text == "core" {
            word.text.clear();
        }
    }
    Some(plain(Some(words)))
}

/// Resources. Without groups only their syntax is checked.
pub(crate) fn resources(arguments: &mut Arguments, groups: Option<&[String]>) -> Option<Vec<Word>> {
    let words = arguments.words("resources", false)?;
    let anywhere = ["*".to_owned()];
    check(arguments, &words, |resource| wrong_resource(resource, groups.unwrap_or(&anywhere)));
    Some(words)
}

fn verbs(arguments: &mut Arguments, known: &[&'static str]) -> Option<Vec<Word>> {
    let words = arguments.words("verbs", false)?;
    let of_paths = known == URL_VERBS;
    check(arguments, &words, |verb| {
        let prefixed = verb.split_once(':').is_some_and(|(prefix, _)| VERB_PREFIXES.contains(&prefix));
        if known.contains(&verb) || (prefixed && !of_paths) {
            return None;
        }
        let near = match did_you_mean(verb, known.iter().copied()) {
            near if near.is_empty() && of_paths => format!("; expected one of {}", known.join(", ")),
            near if near.is_empty() => format!("; expected one of {}", known.join(", ")),
            near => near,
        };
        Some(format!("unknown verb `{verb}`{near}"))
    });
    Some(words)
}

fn urls(arguments: &mut Arguments) -> Option<Vec<Word>> {
    let words = arguments.words("urls", false)?;
    check(arguments, &words, |url| {
        if url != "*" && !url.starts_with('/') {
            return Some(format!("a path must start with `/`: write `/{url}`"));
        }
        let star = url.find('*').is_some_and(|at| at + 1 < url.len());
        star.then(|| format!("`*` is only allowed at the end of a path: `{url}`"))
    });
    Some(words)
}

/// Records the error of each invalid word.
pub(crate) fn check(arguments: &mut Arguments, words: &[Word], wrong: impl Fn(&str) -> Option<String>) {
    for word in words {
        if let Some(what) = wrong(&word.text) {
            arguments.wrong(word.span, what);
        }
    }
}

/// The words without their spans.
pub(crate) fn plain(words: Option<Vec<Word>>) -> Vec<String> {
    words.unwrap_or_default().into_iter().map(|word| word.text).collect()
}

#[cfg(test)]
mod tests {
    use super::SHAPE;

    #[test]
    fn every_key_is_documented() {
        crate::arguments::assert_documented(&SHAPE);
    }
}
