//! GET of objects and lists.

use std::sync::Arc;

use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use base64::{DecodeError, Engine as _};
use bytes::Bytes;
use http::{Response, StatusCode};
use kubewright_apimachinery::json::{self, ParseOptions};
use kubewright_apimachinery::selector::{FieldSelector, LabelSelector};
use kubewright_apimachinery::status::{ApiError, Cause};
use kubewright_apis::protobuf;
use serde_json::{Map, Value, json};

use crate::clock::Clock;
use crate::encoding::body::{Body, Items};
use crate::encoding::negotiate::{negotiate, wrong_number};
use crate::encoding::response::{self, Encoding, Format, Shown, View};
use crate::encoding::{row, yaml_list};
use crate::ids::Ids;
use crate::registry::conversion::Conversion;
use crate::registry::resource::Resource;
use crate::request::Request;
use crate::request::options::{At, ListOptions, parse_revision};
use crate::storage::compaction::Compaction;
use crate::storage::{Store, StoredObject};

/// The selection of a list or watch.
pub(crate) struct Filter {
    /// Key prefix: a namespace with its slash, or empty.
    pub(crate) prefix: String,
    labels: LabelSelector,
    fields: FieldSelector,
    /// Field selectors refer to fields of a version other than the storage version.
    foreign: bool,
}

impl Filter {
    pub(crate) fn new(resource: &Resource, namespace: &str, options: &ListOptions) -> Result<Self, ApiError> {
        let labels = LabelSelector::parse(&options.label_selector)
            .map_err(|error| ApiError::bad_request(error.to_string()))?;
        let fields = FieldSelector::parse(&options.field_selector)
            .map_err(|error| ApiError::bad_request(error.to_string()))?;
        for requirement in fields.requirements() {
            resource.strategy.check_selectable(&requirement.field)?;
        }
        let prefix = if namespace.is_empty() || !resource.namespaced() {
            String::new()
        } else {
            format!("{namespace}/")
        };
        Ok(Self { prefix, labels, fields, foreign: !resource.is_storage_form() })
    }

    /// Whether there are no selectors: every object below the prefix matches.
    pub(crate) fn is_everything(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    pub(crate) fn matches(&self, resource: &Resource, version: &StoredObject) -> bool {
        version.key.starts_with(&self.prefix) && self.selects(resource, version)
    }

    /// As [`Filter::matches`], for an object below the prefix.
    fn selects(&self, resource: &Resource, version: &StoredObject) -> bool {
        if !self.labels.is_empty() && !self.labels.matches(&version.attributes) {
            return false;
        }
        if self.fields.is_empty() {
            return true;
        }
        let (namespace, name) = version.namespace_and_name();
        let foreign =
            self.foreign.then(|| resource.strategy.selectable(&response::object(resource, version)));
        self.fields.matches(|field| match (field, &foreign) {
            ("metadata.name", _) => Some(name),
            ("metadata.namespace", _) => Some(namespace),
            (_, Some(own)) => own.iter().find(|(known, _)| known == field).map(|(_, value)| value.as_str()),
            (_, None) => version.attributes.field(field),
        })
    }
}

/// Reads objects, lists and watches them for requests.
pub(crate) struct ReadPath {
    pub(crate) store: Arc<Store>,
    pub(crate) compaction: Arc<Compaction>,
    pub(crate) conversion: Arc<Conversion>,
    pub(crate) clock: Arc<dyn Clock>,
    /// For the random duration of a watch without a timeout.
    pub(crate) ids: Arc<Ids>,
}

impl ReadPath {
    /// GET of one object.
    pub(crate) async fn get(
        &self,
        request: &Request,
        resource: &Resource,
        namespace: &str,
        name: &str,
    ) -> Result<Response<Body>, ApiError> {
        let format = negotiate(request, resource)?;
        if let Some(revision) = request.query.get("resourceVersion").filter(|text| !text.is_empty()) {
            self.check_reachable(parse_revision(revision)?)?;
        }
        let version = self.find(resource, namespace, name)?;
        if matches!(format.view, View::MetadataList(_)) {
            return Err(wrong_number(resource, false));
        }
        self.conversion.convert_versions(resource, std::slice::from_ref(&version)).await?;
        Ok(response::answer_one(
            StatusCode::OK,
            resource,
            format,
            &Shown::Version(&version),
            self.clock.now(),
        ))
    }

    /// The stored version of an object for a read, or a NotFound error.
    pub(crate) fn find(
        &self,
        resource: &Resource,
        namespace: &str,
        name: &str,
    ) -> Result<Arc<StoredObject>, ApiError> {
        self.store
            .get_readable(&resource.storage, &resource.key(namespace, name))
            .ok_or_else(|| ApiError::not_found(resource.qualified(), name))
    }

    /// GET of a collection.
    pub(crate) async fn list(
        &self,
        request: &Request,
        resource: &Arc<Resource>,
        namespace: &str,
        only: &str,
    ) -> Result<Response<Body>, ApiError> {
        let format = negotiate(request, resource)?;
        let options = ListOptions::read(&request.query, false)?;
        let filter = Filter::new(resource, namespace, &options)?;
        self.convert_for(resource, &filter).await?;
        let page = self.page(resource, &filter, &options, only)?;
        self.conversion.convert_versions(resource, &page.items).await?;
        Ok(self.list_answer(resource, format, page))
    }

    /// Converts the objects that a filter evaluates: selectable fields are those of the requested version.
    pub(crate) async fn convert_for(&self, resource: &Resource, filter: &Filter) -> Result<(), ApiError> {
        if filter.fields.is_empty() || resource.converter().is_none() {
            return Ok(());
        }
        let listing = self.store.list(&resource.storage, &filter.prefix, None);
        self.conversion
            .convert_versions(resource, &listing.map(|listing| listing.items).unwrap_or_default())
            .await
    }

    pub(crate) fn list_answer(&self, resource: &Arc<Resource>, format: Format, page: Page) -> Response<Body> {
        if matches!(format.view, View::Metadata(_)) {
            return response::failure(&wrong_number(resource, true));
        }
        let mut meta = page.meta();
        if format.view == View::Whole && resource.is_unstructured() {
            // Upstream's lists of unstructured objects always have this field.
            meta.entry("continue").or_insert_with(|| "".into());
        }
        let api_version = resource.gvk().api_version();
        match (format.view, format.encoding) {
            (View::Whole, Encoding::Json) => {
                let head = json!({"kind": resource.list_kind(), "apiVersion": api_version, "metadata": meta});
                let mut head = json::to_vec(&head);
                head.pop();
                head.extend_from_slice(b",\"items\":[");
                let body = Body::list(head, response::items(resource, page.items), b",", b"]}");
                return response::respond(StatusCode::OK, "application/json", body);
            }
            (View::Whole, Encoding::Protobuf) => {
                let items = response::protobuf_items(resource, &page.items);
                let length = items.iter().map(Bytes::len).sum();
                let list = json!({"metadata": meta});
                let head = protobuf::list_head(&api_version, resource.list_kind(), &list, length);
                let body = Body::list(head, Items::Encoded(items), b"", protobuf::TAIL);
                return response::respond(StatusCode::OK, protobuf::MEDIA_TYPE, body);
            }
            (view, Encoding::Json) if response::is_rendered_one_by_one(resource, view, page.items.len()) => {
                let (head, tail) = response::list_ends(resource, view, &meta);
                let render = row::render(resource.clone(), view, self.clock.now());
                let body = Body::list(head, Items::rendered(page.items, render), b",", tail);
                return response::respond(StatusCode::OK, "application/json", body);
            }
            (view, Encoding::Yaml)
                if !page.items.is_empty()
                    && (view == View::Whole
                        || response::is_rendered_one_by_one(resource, view, page.items.len())) =>
            {
                let body = yaml_list::body(resource, view, &meta, page.items, self.clock.now());
                return response::respond(StatusCode::OK, "application/yaml", body);
            }
            _ => {}
        }
        let objects: Vec<Value> =
            page.items.iter().map(|version| response::object(resource, version)).collect();
        let value = response::list_of(resource, format.view, objects, &Value::Object(meta), self.clock.now());
        response::answer_value(StatusCode::OK, format.encoding, &value)
    }

    /// The objects of one page of a list.
    pub(crate) fn page(
        &self,
        resource: &Resource,
        filter: &Filter,
        options: &ListOptions,
        only: &str,
    ) -> Result<Page, ApiError> {
        let (at, start) = if options.continue_token.is_empty() {
            (options.at()?, String::new())
        } else {
            let token = Token::parse(&options.continue_token)?;
            (token.place(options)?, format!("{}{}", filter.prefix, token.start))
        };
        let exact = match at {
            At::MostRecent | At::Any => None,
            At::NotOlderThan(revision) => {
                self.check_reachable(revision)?;
                None
            }
            At::Exact(revision) => {
                self.check_reachable(revision)?;
                Some(revision)
            }
        };
        let expired = || expired_list(start.strip_prefix(filter.prefix.as_str()).unwrap_or_default());
        if exact.is_some_and(|revision| self.compaction.is_compacted(revision)) {
            return Err(expired());
        }
        let at = exact.or_else(|| self.store.readable());
        let listing = self.store.list(&resource.storage, &filter.prefix, at).map_err(|_| expired())?;
        let mut items: Vec<Arc<StoredObject>> = listing
            .items
            .into_iter()
            .filter(|version| start.is_empty() || *version.key >= *start)
            .filter(|version| only.is_empty() || version.namespace_and_name().1 == only)
            .filter(|version| filter.selects(resource, version))
            .collect();
        let mut page = Page {
            items: Vec::new(),
            revision: listing.revision,
            continue_token: String::new(),
            remaining: None,
        };
        // With resourceVersion 0, kube-apiserver answers from its cache, which ignores limits.
        let limited = options.limit > 0 && options.resource_version != "0";
        if limited && items.len() > options.limit {
            let rest = items.len() - options.limit;
            items.truncate(options.limit);
            // With selectors kube-apiserver does not return the number of remaining items.
            page.remaining = filter.is_everything().then_some(rest);
            let last = items.last().map(|version| version.key.to_string()).unwrap_or_default();
            let start = last.strip_prefix(filter.prefix.as_str()).unwrap_or(&last);
            page.continue_token =
                Token { revision: Some(listing.revision), start: format!("{start}\0") }.encode();
        }
        page.items = items;
        Ok(page)
    }

    /// Fails for a future revision: the client should retry.
    pub(crate) fn check_reachable(&self, revision: u64) -> Result<(), ApiError> {
        let current = self.store.revision();
        if revision <= current {
            return Ok(());
        }
        let message = format!("Too large resource version: {revision}, current: {current}");
        Err(ApiError::timeout(&message, 1).with_causes(vec![Cause {
            reason: "ResourceVersionTooLarge".to_owned(),
            message: "Too large resource version".to_owned(),
            field: String::new(),
        }]))
    }
}

/// The error for a list at an expired revision. `start` is where a continued list resumes: the error has a
/// token for the rest of the list at the latest revision.
fn expired_list(start: &str) -> ApiError {
    if start.is_empty() {
        return ApiError::expired("The resourceVersion for the provided list is too old.");
    }
    let message = "The provided continue parameter is too old to display a consistent list result. You can start a \
                   new list without the continue parameter, or use the continue token in this response to retrieve \
                   the remainder of the results. Continuing with the provided token results in an inconsistent list \
                   - objects that were created, modified, or deleted between the time the first chunk was returned \
                   and now may show up in the list.";
    ApiError::expired(message).with_continue(&Token { revision: None, start: start.to_owned() }.encode())
}

/// One page of a list.
pub(crate) struct Page {
    pub(crate) items: Vec<Arc<StoredObject>>,
    pub(crate) revision: u64,
    continue_token: String,
    remaining: Option<usize>,
}

impl Page {
    fn meta(&self) -> Map<String, Value> {
        let mut meta = Map::new();
        meta.insert("resourceVersion".to_owned(), self.revision.to_string().into());
        if !self.continue_token.is_empty() {
            meta.insert("continue".to_owned(), self.continue_token.as_str().into());
        }
        if let Some(remaining) = self.remaining {
            meta.insert("remainingItemCount".to_owned(), remaining.into());
        }
        meta
    }
}

/// Go's error for invalid base64.
fn go_base64_error(error: &DecodeError) -> String {
    let at = match error {
        DecodeError::InvalidByte(at, _) | DecodeError::InvalidLastSymbol { offset: at, .. } => *at,
        // Go reports an invalid length at the start of the incomplete quantum.
        DecodeError::InvalidLength(length) => length - length % 4,
        DecodeError::InvalidPadding => 0,
    };
    format!("illegal base64 data at input byte {at}")
}

/// A continue token: opaque to clients, but in upstream's format.
struct Token {
    /// `None`: the latest revision, so that the pages of a list may be inconsistent.
    revision: Option<u64>,
    start: String,
}

impl Token {
    fn encode(&self) -> String {
        let revision = self.revision.map_or_else(|| json!(-1), Value::from);
        let token = json!({"v": "meta.k8s.io/v1", "rv": revision, "start": self.start});
        URL_SAFE_NO_PAD.encode(token.to_string())
    }

    fn parse(text: &str) -> Result<Self, ApiError> {
        let bad = |why: String| ApiError::bad_request(format!("invalid continue token: {why}"));
        let bytes = URL_SAFE_NO_PAD
            .decode(text.trim_end_matches('='))
            .map_err(|error| bad(format!("continue key is not valid: {}", go_base64_error(&error))))?;
        let parsed = json::parse(&bytes, ParseOptions::default())
            .map_err(|error| bad(format!("continue key is not valid: {error}")))?;
        let token = parsed.value;
        if token["v"] != "meta.k8s.io/v1" {
            return Err(bad("continue key is not valid: server does not recognize this encoded version "
                .to_owned()
                + &token["v"].to_string()));
        }
        let revision = token["rv"].as_i64().unwrap_or_default();
        if revision == 0 {
            return Err(bad(
                "continue key is not valid: incorrect encoded start resourceVersion (version meta.k8s.io/v1)"
                    .to_owned(),
            ));
        }
        let start = token["start"].as_str().unwrap_or_default();
        if start.is_empty() {
            return Err(bad(
                "continue key is not valid: encoded start key empty (version meta.k8s.io/v1)".to_owned()
            ));
        }
        // A negative revision means the latest one.
        Ok(Self { revision: revision.try_into().ok(), start: start.to_owned() })
    }

    fn place(&self, options: &ListOptions) -> Result<At, ApiError> {
        if !options.resource_version.is_empty() && options.resource_version != "0" {
            return Err(ApiError::bad_request(
                "specifying resource version is not allowed when using continue",
            ));
        }
        Ok(self.revision.map_or(At::MostRecent, At::Exact))
    }
}
