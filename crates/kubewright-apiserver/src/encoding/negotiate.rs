//! Content negotiation: the media type and form of a response, by the `Accept` header.
//!
//! As in kube-apiserver, there are two layers. Built-in resources have a router in front that compares media
//! types without their parameters. The handler behind it, the only layer for custom resources, honors
//! parameters (`as`, `g`, `v`, `stream`) and quality. The two return different errors.

use http::header;
use kubewright_apimachinery::field::quote;
use kubewright_apimachinery::status::ApiError;

use crate::encoding::response::{Encoding, Format, Include, View};
use crate::registry::resource::Resource;
use crate::request::Request;

/// The media types of objects, in the order of preference for wildcards.
const OFFERED: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";
/// The media types of watches.
const STREAMS: &str = "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch";

/// One clause of an `Accept` header.
pub(crate) struct Clause<'a> {
    kind: &'a str,
    subtype: &'a str,
    quality: f64,
    parameters: Vec<(&'a str, &'a str)>,
}

impl<'a> Clause<'a> {
    /// The value of a parameter; the last one if it is repeated.
    pub(crate) fn parameter(&self, name: &str) -> Option<&'a str> {
        self.parameters.iter().rev().find(|(key, _)| *key == name).map(|(_, value)| *value)
    }

    /// Whether the clause matches a media type.
    pub(crate) fn covers(&self, kind: &str, subtype: &str) -> bool {
        (self.kind == "*" && self.subtype == "*")
            || self.kind == kind && (self.subtype == subtype || self.subtype == "*")
    }

    /// Group, version and kind of a transformation; `None` if the clause has none.
    pub(crate) fn target(&self) -> Option<(&'a str, &'a str, &'a str)> {
        let [group, version, kind] = ["g", "v", "as"].map(|name| self.parameter(name));
        let named = group.is_some() || version.is_some() || kind.is_some();
        named.then(|| (group.unwrap_or_default(), version.unwrap_or_default(), kind.unwrap_or_default()))
    }

    /// The encoding that the clause selects; for a wildcard the first one offered.
    pub(crate) fn encoding(&self) -> Option<Encoding> {
        let offered = [
            ("json", Encoding::Json),
            ("yaml", Encoding::Yaml),
            ("vnd.kubernetes.protobuf", Encoding::Protobuf),
        ];
        offered.into_iter().find(|(subtype, _)| self.covers("application", subtype)).map(|(_, found)| found)
    }

    /// Whether its `stream` is supported: `watch`, and not in YAML.
    fn has_stream(&self, encoding: Encoding) -> bool {
        self.parameter("stream").is_none_or(|stream| stream == "watch" && encoding != Encoding::Yaml)
    }

    /// Whether it precedes another clause in upstream's order.
    fn precedes(&self, other: &Self) -> bool {
        self.quality > other.quality
            || (self.kind != "*" && other.kind == "*")
            || (self.subtype != "*" && other.subtype == "*")
    }
}

/// The clauses of an `Accept` header, best first, without invalid ones.
pub(crate) fn clauses(accept: &str) -> Vec<Clause<'_>> {
    let mut sorted: Vec<Clause<'_>> = Vec::new();
    for clause in accept.split(',').filter_map(clause) {
        // Go uses insertion sort for short lists. The result differs from other sorts, because the order is
        // not transitive.
        sorted.push(clause);
        let mut at = sorted.len() - 1;
        while at > 0 && sorted[at].precedes(&sorted[at - 1]) {
            sorted.swap(at, at - 1);
            at -= 1;
        }
    }
    sorted
}

fn clause(text: &str) -> Option<Clause<'_>> {
    let (media, rest) = text.trim_matches(' ').split_once(';').unwrap_or((text.trim_matches(' '), ""));
    let (kind, subtype) = match media.split_once('/') {
        Some((kind, subtype)) if !subtype.is_empty() => (kind.trim_matches(' '), subtype.trim_matches(' ')),
        _ if media.trim_matches([' ', '/']) == "*" => ("*", "*"),
        _ => return None,
    };
    if subtype.contains('/') {
        return None;
    }
    let mut clause = Clause { kind, subtype, quality: 1.0, parameters: Vec::new() };
    for (name, value) in rest.split(';').filter_map(|part| part.split_once('=')) {
        if value.is_empty() || value.contains('=') {
            continue;
        }
        match name.trim_matches(' ') {
            "q" => clause.quality = value.parse().unwrap_or_default(),
            name => clause.parameters.push((name, value.trim_matches(' '))),
        }
    }
    Some(clause)
}

/// The encoding of a document without transformations, such as legacy discovery. `routed`: the router is in
/// front.
pub(crate) fn negotiate_document(request: &Request, routed: bool) -> Result<Encoding, ApiError> {
    let accept = request.header(header::ACCEPT);
    if accept.is_empty() {
        return Ok(Encoding::Json);
    }
    if routed {
        check_route(accept, "", false)?;
    }
    let mut plain = clauses(accept).into_iter().filter(|clause| clause.target().is_none());
    plain.find_map(|clause| clause.encoding()).ok_or_else(not_acceptable)
}

/// The form of the response to a request for a resource.
pub(crate) fn negotiate(request: &Request, resource: &Resource) -> Result<Format, ApiError> {
    let streams = matches!(request.verb(), "list" | "watch");
    let tables = resource.is_stored() || resource.is_component_statuses();
    negotiate_for(request, resource, tables, streams, "")
}

/// As [`negotiate`], for a subresource that cannot be a table. `first`: a media type that the router offers
/// first.
pub(crate) fn negotiate_without_tables(
    request: &Request,
    resource: &Resource,
    first: &str,
) -> Result<Format, ApiError> {
    negotiate_for(request, resource, false, false, first)
}

fn negotiate_for(
    request: &Request,
    resource: &Resource,
    tables: bool,
    streams: bool,
    first: &str,
) -> Result<Format, ApiError> {
    let accept = request.header(header::ACCEPT);
    if accept.is_empty() {
        return Ok(Format { view: View::Whole, encoding: Encoding::Json });
    }
    if resource.is_routed() {
        check_route(accept, first, streams)?;
    }
    for clause in clauses(accept) {
        let Some(encoding) = clause.encoding() else { continue };
        let protobuf = encoding == Encoding::Protobuf;
        if !clause.has_stream(encoding) || clause.parameter("sv").is_some_and(|version| version != "v1") {
            continue;
        }
        let view = match clause.target() {
            // Custom resources have no protobuf encoding; their metadata does.
            None if protobuf && resource.is_unstructured() => continue,
            None => View::Whole,
            Some(("meta.k8s.io", version @ ("v1" | "v1beta1"), kind)) => {
                let version = if version == "v1" { "v1" } else { "v1beta1" };
                match kind {
                    "Table" if tables && !protobuf => View::Table(version, include(request)?),
                    "PartialObjectMetadata" => View::Metadata(version),
                    "PartialObjectMetadataList" => View::MetadataList(version),
                    _ => continue,
                }
            }
            Some(_) => continue,
        };
        return Ok(Format { view, encoding });
    }
    Err(not_acceptable())
}

fn include(request: &Request) -> Result<Include, ApiError> {
    match request.query.get("includeObject").unwrap_or_default() {
        "" | "Metadata" => Ok(Include::Metadata),
        "None" => Ok(Include::Nothing),
        "Object" => Ok(Include::Object),
        other => Err(ApiError::bad_request(format!(
            "Unable to convert to Table as requested: includeObject: Invalid value: {}: must be 'Metadata', 'Object', \
             'None', or empty",
            quote(other)
        ))),
    }
}

/// The router's check: an offered media type or `*/*`.
pub(crate) fn check_route(accept: &str, first: &str, streams: bool) -> Result<(), ApiError> {
    let offered = [first, "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];
    let fits = |clause: &str| {
        let media = clause.split(';').next().unwrap_or_default().trim_matches(' ');
        media == "*/*" || (!media.is_empty() && offered.contains(&media))
    };
    if accept.split(',').any(fits) {
        return Ok(());
    }
    let mut available: Vec<&str> = offered.into_iter().filter(|media| !media.is_empty()).collect();
    if streams {
        available.push(STREAMS);
    }
    Err(no_representation(&available.join(", ")))
}

/// The router's error.
pub(crate) fn no_representation(available: &str) -> ApiError {
    let message = format!("406: Not Acceptable\n\nAvailable representations: {available}");
    let mut error = ApiError::new(406, "NotAcceptable", message);
    error.details = Some(Box::default());
    error
}

/// The handler's error.
pub(crate) fn not_acceptable() -> ApiError {
    ApiError::new(406, "NotAcceptable", format!("only the following media types are accepted: {OFFERED}"))
}

/// The error for a watch in a media type that cannot be streamed.
pub(crate) fn no_stream() -> ApiError {
    ApiError::new(406, "NotAcceptable", format!("only the following media types are accepted: {STREAMS}"))
}

/// The error for a list as PartialObjectMetadata, or an object as PartialObjectMetadataList.
pub(crate) fn wrong_number(resource: &Resource, list: bool) -> ApiError {
    let suffix = if list { "List" } else { "" };
    let go_type = match resource.group() {
        _ if resource.is_unstructured() => format!("*unstructured.Unstructured{suffix}"),
        "" | "events.k8s.io" => format!("*core.{}{suffix}", resource.kind()),
        "internal.apiserver.k8s.io" => format!("*apiserverinternal.{}{suffix}", resource.kind()),
        group => {
            format!("*{}.{}{suffix}", group.split('.').next().unwrap_or_default(), resource.kind())
        }
    };
    let why = if list {
        format!("you requested PartialObjectMetadata, but the requested object is a list ({go_type})")
    } else {
        format!("you requested PartialObjectMetadataList, but the requested object is not a list ({go_type})")
    };
    ApiError::new(406, "NotAcceptable", why)
}

/// The encoding of errors: that of the first supported clause without a transformation, or JSON.
pub(crate) fn error_encoding(accept: &str) -> Encoding {
    if !accept.contains("yaml") && !accept.contains("protobuf") {
        return Encoding::Json;
    }
    let mut plain = clauses(accept).into_iter().filter(|clause| clause.target().is_none());
    plain
        .find_map(|clause| clause.encoding().filter(|encoding| clause.has_stream(*encoding)))
        .unwrap_or(Encoding::Json)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(accept: &str) -> Vec<String> {
        clauses(accept).iter().map(|clause| format!("{}/{}", clause.kind, clause.subtype)).collect()
    }

    #[test]
    fn clauses_are_ordered_as_upstream_orders_them() {
        assert_eq!(order("a/b;q=0.1, c/d"), ["c/d", "a/b"]);
        assert_eq!(order("*/*, a/*, a/b"), ["a/b", "a/*", "*/*"]);
        assert_eq!(order("nonsense, a/b/c, *, a/b"), ["a/b", "*/*"]);
    }

    #[test]
    fn the_router_ignores_parameters_and_rejects_partial_wildcards() {
        assert_eq!(check_route("application/json;as=Table", "", false), Ok(()));
        assert_eq!(check_route("text/html, */*;q=0.1", "", false), Ok(()));
        let refusal = check_route("application/*", "text/plain", true).unwrap_err();
        assert!(refusal.message.contains("text/plain, application/json, "), "{}", refusal.message);
        assert!(refusal.message.ends_with("protobuf;stream=watch"), "{}", refusal.message);
    }

    #[test]
    fn errors_follow_the_first_clause_without_a_transformation() {
        assert_eq!(error_encoding("application/yaml"), Encoding::Yaml);
        assert_eq!(error_encoding("application/json, application/yaml"), Encoding::Json);
        let table = "application/json;as=Table;g=meta.k8s.io;v=v1, application/yaml";
        assert_eq!(error_encoding(table), Encoding::Yaml);
        assert_eq!(error_encoding("application/vnd.kubernetes.protobuf;stream=watch"), Encoding::Protobuf);
        let table = "application/vnd.kubernetes.protobuf;as=Table;g=meta.k8s.io;v=v1";
        assert_eq!(error_encoding(table), Encoding::Json);
    }
}
