//! `#[webhook(...)]`: how the API server calls an admission webhook.
//!
//! On the impl of a handler it adds the function `webhook`, which the manager reads when the handler is registered. With
//! `url` it goes on any item, and declares a webhook that is served outside of the cluster. Validates the keys of a
//! webhook by the API server's rules. CEL conditions are checked with the manifests.

mod selector;

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::{Error, ItemImpl};

use crate::arguments::{Arguments, Shape, Value, Word};
use crate::names::{is_dns_label, is_dns_subdomain, is_qualified_name, is_service_name};
use crate::nearest::did_you_mean;
use crate::rbac::{check, groups, plain, resources};
use crate::register::{name_of, place, refused, register, submit, texts};

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

/// The traits that a handler can implement.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Handler {
    Defaulter,
    Validator,
    Admission,
}

impl Handler {
    fn of(item: &ItemImpl) -> Option<Self> {
        let (path, _) = item.trait_.as_ref()?;
        match path.segments.last()?.ident.to_string().as_str() {
            "Defaulter" => Some(Self::Defaulter),
            "Validator" => Some(Self::Validator),
            "AdmissionHandler" => Some(Self::Admission),
            _ => None,
        }
    }

    /// The method of the manager that registers it.
    fn registration(self) -> &'static str {
        match self {
            Self::Defaulter => "defaulter",
            Self::Validator => "validator",
            Self::Admission => "admission",
        }
    }
}

pub(crate) fn expand(arguments: TokenStream, item: &TokenStream) -> TokenStream {
    let expanded = Arguments::read(arguments, &SHAPE).and_then(|arguments| {
        if arguments.key("url").is_some() { at_url(arguments, item) } else { on_handler(arguments, item) }
    });
    expanded.unwrap_or_else(|error| refused(&error, item))
}

/// A webhook that is served outside of the cluster.
fn at_url(arguments: Arguments, item: &TokenStream) -> Result<TokenStream, Error> {
    let fields = fields(arguments, None)?;
    Ok(register("webhook", item.clone(), |place| {
        let declared = declaration(&place, &fields);
        quote!(::kubewright::declare::Declared::Webhook(::std::boxed::Box::new(#declared.with_defaults())))
    }))
}

/// A webhook that the manager serves once its handler is registered.
fn on_handler(arguments: Arguments, item: &TokenStream) -> Result<TokenStream, Error> {
    let misplaced = || {
        let what = "#[webhook] goes on `impl Defaulter for ...`, `impl Validator for ...` or `impl AdmissionHandler for ...`; \
                    with `url`, on any item";
        Error::new(Span::call_site(), what)
    };
    let parsed: Option<ItemImpl> = syn::parse2(item.clone()).ok();
    let handler = parsed.as_ref().and_then(Handler::of);
    let fields = fields(arguments, handler)?;
    let (Some(mut item), Some(handler)) = (parsed, handler) else { return Err(misplaced()) };
    let place = place(&name_of(&item.self_ty));
    let declared = declaration(&place, &fields);
    item.items.push(match handler {
        Handler::Admission => syn::parse_quote! {
            fn webhook() -> ::core::option::Option<::kubewright::declare::Webhook> {
                ::core::option::Option::Some(#declared)
            }
        },
        Handler::Defaulter | Handler::Validator => syn::parse_quote! {
            fn webhook() -> ::kubewright::declare::Webhook {
                #declared
            }
        },
    });
    let registration = handler.registration();
    let declared = quote! {
        ::kubewright::declare::Declared::Handler(::kubewright::declare::Handler {
            item: #place,
            registration: ::std::string::String::from(#registration),
        })
    };
    let submitted = submit(&item.attrs, &declared);
    Ok(quote!(#item #submitted))
}

fn declaration(place: &TokenStream, fields: &TokenStream) -> TokenStream {
    quote! {
        ::kubewright::declare::Webhook {
            item: #place,
            #fields
            ..::core::default::Default::default()
        }
    }
}

/// The fields of the declaration. What a handler of one kind leaves out follows from that kind.
fn fields(mut arguments: Arguments, handler: Option<Handler>) -> Result<TokenStream, Error> {
    check_combinations(&mut arguments, handler);
    let mut fields = TokenStream::new();
    let mut text = |key: TokenStream, text: Option<String>| {
        fields.extend(text.map(|text| quote!(#key: ::std::string::String::from(#text),)));
    };
    let word = |word: Option<Word>| word.map(|word| word.text);

    text(quote!(name), word(name(&mut arguments)));
    text(quote!(path), word(path(&mut arguments)));
    text(quote!(url), word(url(&mut arguments)));
    let choice = |arguments: &mut Arguments, key, choices| arguments.choice(key, choices).map(str::to_owned);
    text(quote!(failure_policy), choice(&mut arguments, "failure_policy", &["fail", "ignore"]));
    text(quote!(match_policy), choice(&mut arguments, "match_policy", &["exact", "equivalent"]));
    text(quote!(side_effects), choice(&mut arguments, "side_effects", &["none", "noneOnDryRun"]));
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

/// Checks which keys are required and which exclude each other.
fn check_combinations(arguments: &mut Arguments, handler: Option<Handler>) {
    let typed = match handler {
        Some(Handler::Defaulter) => Some(("Defaulter", true)),
        Some(Handler::Validator) => Some(("Validator", false)),
        Some(Handler::Admission) | None => None,
    };
    if let (Some((name, mutating)), Some(key)) = (typed, arguments.key("mutating"))
        && arguments.is_false("mutating") == mutating
    {
        arguments.wrong(key, format!("`mutating` follows from `{name}`; remove it"));
    }
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
    let missing = required
        .iter()
        .filter(|(key, _)| typed.is_none() && arguments.key(key).is_none() && !(*key == "path" && placed));
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
    let validates = arguments.is_false("mutating") || handler == Some(Handler::Validator);
    if let (true, Some(policy)) = (validates, arguments.key("reinvocation_policy")) {
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

#[cfg(test)]
mod tests {
    use super::SHAPE;

    #[test]
    fn every_key_is_documented() {
        crate::arguments::assert_documented(&SHAPE);
    }
}
