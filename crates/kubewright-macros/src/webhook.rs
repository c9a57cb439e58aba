//! `#[webhook(...)]`: an admission webhook that the operator serves.
//!
//! Checks the keys of a webhook against the API server's validation. CEL expressions are checked with the
//! manifests.

mod selector;

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::Error;

use crate::arguments::{Arguments, Shape, Value, Word};
use crate::names::{is_dns_label, is_dns_subdomain, is_qualified_name, is_service_name};
use crate::nearest::did_you_mean;
use crate::rbac::{check, groups, plain, resources};
use crate::register::{refused, register, texts};

const SHAPE: Shape = Shape {
    name: "webhook",
    keys: &[
        "name",
        "mutating",
        "path",
        "url",
        "groups",
        "versions",
        "resources",
        "verbs",
        "failure_policy",
        "match_policy",
        "side_effects",
        "timeout_seconds",
        "reinvocation_policy",
        "admission_review_versions",
        "service_name",
        "service_namespace",
        "service_port",
        "namespace_selector",
        "object_selector",
        "match_conditions",
        "configuration",
    ],
    foreign: &[
        ("webhook_versions", "only v1 exists"),
        ("webhookVersions", "only v1 exists"),
        ("patch", "write `namespace_selector`, `object_selector` or `match_conditions`"),
        ("operations", "write `verbs`"),
        ("validating", "write `mutating = false`"),
    ],
};

const OPERATIONS: &[&str] = &["create", "update", "delete", "connect", "*"];
/// Maximum number of match conditions in the API server.
const CONDITIONS: usize = 64;

pub(crate) fn expand(arguments: TokenStream, item: TokenStream) -> TokenStream {
    match fields(arguments) {
        Ok(fields) => register("webhook", item, |place| {
            quote! {
                ::kubewright::declare::Declared::Webhook(::std::boxed::Box::new(::kubewright::declare::Webhook {
                    item: #place,
                    #fields
                    ..::core::default::Default::default()
                }))
            }
        }),
        Err(error) => refused(&error, &item),
    }
}

/// The fields of the generated declaration.
fn fields(tokens: TokenStream) -> Result<TokenStream, Error> {
    let mut arguments = Arguments::read(tokens, &SHAPE)?;
    check_combinations(&mut arguments);
    let mut fields = TokenStream::new();
    let mut text = |key: TokenStream, text: Option<String>| {
        fields.extend(text.map(|text| quote!(#key: ::std::string::String::from(#text),)));
    };
    let word = |word: Option<Word>| word.map(|word| word.text);

    text(quote!(name), word(name(&mut arguments)));
    text(quote!(path), word(path(&mut arguments)));
    text(quote!(url), word(url(&mut arguments)));
    let choice = |arguments: &mut Arguments, key, choices| arguments.choice(key, choices).map(str::to_owned);
    let policy = choice(&mut arguments, "failure_policy", &["fail", "ignore"]);
    text(quote!(failure_policy), policy.or(Some("fail".to_owned())));
    text(quote!(match_policy), choice(&mut arguments, "match_policy", &["exact", "equivalent"]));
    let effects = choice(&mut arguments, "side_effects", &["none", "noneOnDryRun"]);
    text(quote!(side_effects), effects.or(Some("none".to_owned())));
    text(quote!(reinvocation_policy), choice(&mut arguments, "reinvocation_policy", &["never", "ifNeeded"]));
    let form = "Service name: use lower-case letters, digits and `-`, starting with a letter";
    text(quote!(service_name), word(arguments.text_like("service_name", is_service_name, form)));
    let form = "namespace: use up to 63 lower-case letters, digits and `-`";
    text(quote!(service_namespace), word(arguments.text_like("service_namespace", is_dns_label, form)));
    let form = "configuration name: use a lower-case domain name";
    text(quote!(configuration), word(arguments.text_like("configuration", is_dns_subdomain, form)));

    let groups = groups(&mut arguments);
    let resources = plain(resources(&mut arguments, groups.as_deref()));
    let lists = [
        (quote!(groups), groups.unwrap_or_default()),
        (quote!(versions), plain(versions(&mut arguments))),
        (quote!(resources), resources),
        (quote!(verbs), plain(operations(&mut arguments))),
        (quote!(admission_review_versions), review_versions(&mut arguments)),
    ];
    for (key, names) in lists {
        let names = texts(names.iter().map(String::as_str));
        fields.extend(quote!(#key: #names,));
    }
    if let Some(mutating) = arguments.flag("mutating") {
        fields.extend(quote!(mutating: #mutating,));
    }
    if let Some(seconds) = arguments.number("timeout_seconds", 1, 30).and_then(|it| i32::try_from(it).ok()) {
        fields.extend(quote!(timeout_seconds: ::core::option::Option::Some(#seconds),));
    }
    if let Some(port) = arguments.number("service_port", 1, 65_535).and_then(|it| u16::try_from(it).ok()) {
        fields.extend(quote!(service_port: ::core::option::Option::Some(#port),));
    }
    for (key, name) in
        [("namespace_selector", quote!(namespace_selector)), ("object_selector", quote!(object_selector))]
    {
        if let Some(selector) = arguments.value(key).and_then(|value| selector::read(&mut arguments, value)) {
            // The selector was already parsed by this macro.
            fields.extend(quote!(#name: ::kubewright::serde_json::from_str(#selector).ok(),));
        }
    }
    let conditions = conditions(&mut arguments);
    let conditions = conditions.iter().map(|(name, expression)| {
        quote! {
            ::kubewright::declare::MatchCondition {
                name: ::std::string::String::from(#name),
                expression: ::std::string::String::from(#expression),
            }
        }
    });
    fields.extend(quote!(match_conditions: ::std::vec::Vec::from([#(#conditions),*]),));
    arguments.finish()?;
    Ok(fields)
}

/// Checks required and conflicting keys.
fn check_combinations(arguments: &mut Arguments) {
    let required = [
        ("name", "name = \"mguestbook-v1.kb.io\""),
        ("mutating", "mutating = true /* or false */"),
        ("groups", "groups = \"example.com\""),
        ("versions", "versions = \"v1\""),
        ("resources", "resources = \"guestbooks\""),
        ("verbs", "verbs = \"create, update\""),
        ("path", "path = \"/mutate-example-com-v1-guestbook\""),
    ];
    let placed = arguments.key("url").is_some();
    let missing =
        required.iter().filter(|(key, _)| arguments.key(key).is_none() && !(*key == "path" && placed));
    let (keys, examples): (Vec<String>, Vec<&str>) =
        missing.map(|(key, example)| (format!("`{key}`"), *example)).unzip();
    if let Some((last, others)) = keys.split_last() {
        let keys = match others {
            [] => format!("{last} is missing"),
            others => format!("{} and {last} are missing", others.join(", ")),
        };
        arguments.wrong(Span::call_site(), format!("{keys}: write `{}`", examples.join(", ")));
    }
    match (arguments.key("path"), arguments.key("url")) {
        (Some(_), Some(url)) => {
            arguments.wrong(url, "`path` and `url` are mutually exclusive");
        }
        (None, Some(_)) => {
            for key in ["service_name", "service_namespace", "service_port"] {
                if let Some(extra) = arguments.key(key) {
                    arguments.wrong(extra, "not allowed with `url`; remove it");
                }
            }
        }
        (_, None) => {}
    }
    if let (true, Some(policy)) = (arguments.is_false("mutating"), arguments.key("reinvocation_policy")) {
        arguments.wrong(policy, "only allowed for mutating webhooks; remove it, or write `mutating = true`");
    }
}

fn name(arguments: &mut Arguments) -> Option<Word> {
    let form = "webhook name: use a lower-case domain name such as `mguestbook-v1.kb.io`";
    let name = arguments.text_like("name", is_dns_subdomain, form)?;
    if name.text.split('.').count() < 3 {
        let what = format!(
            "a webhook name must have at least three labels: write `{}.kb.io`",
            name.text.replace('.', "-")
        );
        arguments.wrong(name.span, what);
    }
    Some(name)
}

fn path(arguments: &mut Arguments) -> Option<Word> {
    let path = arguments.text("path")?;
    if !path.text.starts_with('/') {
        arguments.wrong(path.span, format!("a path must start with `/`: write `/{}`", path.text));
    } else if path.text.len() > 1
        && path.text.trim_end_matches('/').split('/').skip(1).any(|step| !is_dns_subdomain(step))
    {
        let what =
            format!("invalid path `{}`: use lower-case letters, digits, `-` and `.` between `/`", path.text);
        arguments.wrong(path.span, what);
    }
    Some(path)
}

fn url(arguments: &mut Arguments) -> Option<Word> {
    let url = arguments.text("url")?;
    match url.text.strip_prefix("https://").map(|rest| rest.split('/').next().unwrap_or_default()) {
        None => arguments.wrong(url.span, "a webhook url must start with `https://`"),
        Some(host) if host.is_empty() || host.contains('@') || url.text.contains(['?', '#', ' ']) => {
            arguments.wrong(
                url.span,
                "a webhook url must have the form `https://host:port/path`, without user, query or fragment",
            );
        }
        Some(_) => {}
    }
    Some(url)
}

fn versions(arguments: &mut Arguments) -> Option<Vec<Word>> {
    let words = arguments.words("versions", false)?;
    check(arguments, &words, |version| match version.rsplit_once('/') {
        Some((_, version)) => Some(format!("a version must not contain a group: write `{version}`")),
        None if version == "*" || is_service_name(version) => None,
        None => Some(format!("`{version}` is not a valid version such as `v1` or `v1beta1`")),
    });
    Some(words)
}

fn operations(arguments: &mut Arguments) -> Option<Vec<Word>> {
    let words = arguments.words("verbs", false)?;
    check(arguments, &words, |verb| match verb {
        "patch" => Some("a patch is an update for webhooks; write `update`".to_owned()),
        "get" | "list" | "watch" => Some(format!("`{verb}` is not allowed: webhooks do not intercept reads")),
        "deletecollection" => {
            Some("each deletion is a separate request for webhooks; write `delete`".to_owned())
        }
        _ if OPERATIONS.contains(&verb) => None,
        _ => {
            let near = match did_you_mean(verb, OPERATIONS.iter().copied()) {
                near if near.is_empty() => format!("; expected one of {}", OPERATIONS.join(", ")),
                near => near,
            };
            Some(format!("unknown operation `{verb}`{near}"))
        }
    });
    if let (Some(all), 2..) = (words.iter().find(|word| word.text == "*"), words.len()) {
        arguments.wrong(all.span, "`*` includes all operations; remove the others");
    }
    Some(words)
}

/// Defaults to `v1`, which every supported API server sends.
fn review_versions(arguments: &mut Arguments) -> Vec<String> {
    let Some(words) = arguments.words("admission_review_versions", false) else {
        return vec!["v1".to_owned()];
    };
    check(arguments, &words, |version| {
        (!matches!(version, "v1" | "v1beta1"))
            .then(|| format!("unknown AdmissionReview version `{version}`; expected v1 or v1beta1"))
    });
    plain(Some(words))
}

/// Names and expressions of match conditions.
fn conditions(arguments: &mut Arguments) -> Vec<(String, String)> {
    let form = "match conditions are pairs of a name and a CEL expression: `[(\"no-nodes\", \"request.userInfo...\")]`";
    let (items, whole) = match arguments.value("match_conditions") {
        None => return Vec::new(),
        Some(Value::List(items, span)) => (items, span),
        Some(other) => {
            arguments.wrong(other.span(), form);
            return Vec::new();
        }
    };
    if items.len() > CONDITIONS {
        arguments.wrong(whole, format!("at most {CONDITIONS} match conditions are allowed"));
    }
    let mut conditions: Vec<(String, String)> = Vec::new();
    for item in items {
        let Value::Pair(pair, span) = item else {
            arguments.wrong(item.span(), form);
            continue;
        };
        let Ok([Value::Text(name), Value::Text(expression)]) = <[Value; 2]>::try_from(pair) else {
            arguments.wrong(span, form);
            continue;
        };
        if !is_qualified_name(&name.text) {
            arguments.wrong(
                name.span,
                format!(
                    "`{}` is not a valid condition name: use letters, digits, `-`, `_` and `.`",
                    name.text
                ),
            );
        } else if conditions.iter().any(|(other, _)| *other == name.text) {
            arguments.wrong(name.span, format!("duplicate condition name `{}`", name.text));
        }
        if expression.text.trim().is_empty() {
            arguments.wrong(expression.span, "the condition has no expression");
        }
        conditions.push((name.text, expression.text));
    }
    conditions
}
