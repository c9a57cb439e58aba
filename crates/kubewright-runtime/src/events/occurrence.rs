//! Recorded events, and the key by which they are aggregated.
//!
//! Texts are truncated to the limits of the API server here, so that no event is rejected for its length.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kubewright_apimachinery::names::dns1123_subdomain;

use crate::owner::Referable;

/// The limit of reason, action and reporting instance, in bytes.
const WORD_LIMIT: usize = 128;
/// The limit of the note, in bytes.
const NOTE_LIMIT: usize = 1024;

/// One recorded event.
#[derive(Debug)]
pub(super) struct Occurrence {
    pub(super) key: SeriesKey,
    pub(super) note: String,
    pub(super) at: Timestamp,
}

/// The key of a series: events with equal keys are aggregated.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SeriesKey {
    pub(super) source: Arc<Source>,
    pub(super) regarding: Subject,
    related: Option<Subject>,
    type_: EventType,
    reason: String,
    action: String,
    /// `None` if the recorder ignores notes.
    pub(super) note: Option<String>,
    pub(super) annotations: BTreeMap<String, String>,
}

/// The reporting controller and instance.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Source {
    pub(super) controller: String,
    instance: String,
}

/// An object, or a part of one.
#[derive(Debug, Clone)]
pub(super) struct Subject {
    pub(super) object: Arc<ObjectIdentity>,
    field_path: Option<String>,
    /// The version at the first occurrence. It is not compared: otherwise every status update would start a new series.
    resource_version: Option<String>,
}

/// Identifies an object.
#[derive(Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ObjectIdentity {
    api_version: Option<String>,
    kind: Option<String>,
    namespace: Option<String>,
    name: Option<String>,
    uid: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum EventType {
    Normal,
    Warning,
}

impl Source {
    pub(super) fn new(controller: &str, host: &str) -> Self {
        let mut instance = format!("{controller}-{host}");
        instance.truncate(instance.floor_char_boundary(WORD_LIMIT));
        Self { controller: controller.to_owned(), instance }
    }
}

impl Subject {
    /// `None` if the object has no apiVersion and kind.
    pub(super) fn of(object: &impl Referable) -> Option<Self> {
        let gvk = object.gvk()?;
        let meta = object.metadata();
        let identity = ObjectIdentity {
            api_version: Some(gvk.api_version()),
            kind: Some(gvk.kind),
            namespace: meta.namespace.clone(),
            name: meta.name.clone(),
            uid: meta.uid.clone(),
        };
        Some(Self {
            object: Arc::new(identity),
            field_path: None,
            resource_version: meta.resource_version.clone(),
        })
    }

    pub(super) fn of_reference(reference: ObjectReference) -> Option<Self> {
        let ObjectReference { api_version, field_path, kind, name, namespace, resource_version, uid } =
            reference;
        kind.as_ref()?;
        let object = Arc::new(ObjectIdentity { api_version, kind, namespace, name, uid });
        Some(Self { object, field_path, resource_version })
    }

    pub(super) fn kind(&self) -> &str {
        self.object.kind.as_deref().unwrap_or_default()
    }

    /// `namespace/name`, or the name of a cluster-scoped object.
    pub(super) fn key(&self) -> String {
        let name = self.object.name.as_deref().unwrap_or_default();
        self.object
            .namespace
            .as_ref()
            .map_or_else(|| name.to_owned(), |namespace| format!("{namespace}/{name}"))
    }

    fn reference(&self) -> ObjectReference {
        let ObjectIdentity { api_version, kind, namespace, name, uid } = &*self.object;
        ObjectReference {
            api_version: api_version.clone(),
            field_path: self.field_path.clone(),
            kind: kind.clone(),
            name: name.clone(),
            namespace: namespace.clone(),
            resource_version: self.resource_version.clone(),
            uid: uid.clone(),
        }
    }
}

impl PartialEq for Subject {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Subject {}

impl PartialOrd for Subject {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Subject {
    fn cmp(&self, other: &Self) -> Ordering {
        (&self.object, &self.field_path).cmp(&(&other.object, &other.field_path))
    }
}

impl EventType {
    fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

impl SeriesKey {
    pub(super) fn new(
        source: Arc<Source>,
        regarding: Subject,
        related: Option<Subject>,
        type_: EventType,
        reason: &str,
        action: &str,
    ) -> Self {
        let word = |word: &str| word[..word.floor_char_boundary(WORD_LIMIT)].to_owned();
        // The API server requires an action; it defaults to the reason.
        let action = if action.is_empty() { reason } else { action };
        Self {
            source,
            regarding,
            related,
            type_,
            reason: word(reason),
            action: word(action),
            note: None,
            annotations: BTreeMap::new(),
        }
    }

    /// The Event of the first occurrence.
    pub(super) fn event(&self, name: String, note: String, at: Timestamp) -> Event {
        Event {
            metadata: ObjectMeta {
                name: Some(name),
                namespace: Some(self.namespace().to_owned()),
                annotations: (!self.annotations.is_empty()).then(|| self.annotations.clone()),
                ..ObjectMeta::default()
            },
            event_time: Some(MicroTime(at)),
            reporting_controller: Some(self.source.controller.clone()),
            reporting_instance: Some(self.source.instance.clone()),
            regarding: Some(self.regarding.reference()),
            related: self.related.as_ref().map(Subject::reference),
            type_: Some(self.type_.as_str().to_owned()),
            reason: Some(self.reason.clone()),
            action: Some(self.action.clone()),
            note: Some(note),
            ..Event::default()
        }
    }

    /// The name of an Event: the object's name and a unique number.
    pub(super) fn event_name(&self, number: i128, rng: &mut fastrand::Rng) -> String {
        let object = self.regarding.object.name.as_deref().unwrap_or_default();
        let name = format!("{object}.{number:x}");
        if dns1123_subdomain(&name).is_empty() {
            return name;
        }
        // Names of some kinds are not valid in an Event name; role names have colons. A random UUID always is.
        let (low, mid, high) = (rng.u32(..), rng.u16(..), rng.u16(..0x1000));
        let (variant, node) = (rng.u16(..0x4000) | 0x8000, rng.u64(..1 << 48));
        format!("{low:08x}-{mid:04x}-4{high:03x}-{variant:04x}-{node:012x}")
    }

    fn namespace(&self) -> &str {
        // kubectl looks in `default` for events about cluster-scoped objects.
        self.regarding
            .object
            .namespace
            .as_deref()
            .filter(|namespace| !namespace.is_empty())
            .unwrap_or("default")
    }
}

/// Formats a note, truncated to the limit of the API server.
pub(super) fn limited(note: &dyn fmt::Display) -> String {
    /// Stops formatting at the limit.
    struct Limited(String);

    impl Write for Limited {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            let space = NOTE_LIMIT - self.0.len();
            if text.len() <= space {
                self.0.push_str(text);
                return Ok(());
            }
            self.0.push_str(&text[..text.floor_char_boundary(space)]);
            Err(fmt::Error)
        }
    }

    let mut text = Limited(String::new());
    // An error means that the text is full, or that `note` failed to format.
    let _ = write!(text, "{note}");
    text.0
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;

    use super::*;

    fn key(name: &str) -> SeriesKey {
        let mut pod = Pod::default();
        pod.metadata.name = Some(name.to_owned());
        let source = Arc::new(Source::new("c", "h"));
        SeriesKey::new(source, Subject::of(&pod).unwrap(), None, EventType::Normal, "Reason", "")
    }

    #[test]
    fn a_note_is_truncated_at_a_character_boundary() {
        assert_eq!(limited(&"short"), "short");
        let note = limited(&format_args!("x{}", "ä".repeat(1000)));
        assert_eq!(note.len(), 1023);
        assert_eq!(note, format!("x{}", "ä".repeat(511)));
        assert_eq!(limited(&"y".repeat(2000)).len(), 1024);
        // Nothing is appended after truncation.
        assert_eq!(limited(&format_args!("{}z", "ä".repeat(600))).len(), 1024);
    }

    #[test]
    fn reason_action_and_instance_are_truncated_and_the_action_defaults_to_the_reason() {
        let source = Arc::new(Source::new("c", &"h".repeat(200)));
        assert_eq!(source.instance.len(), 128);
        let subject = key("a").regarding;
        let long =
            SeriesKey::new(source, subject, None, EventType::Normal, &"é".repeat(100), &"a".repeat(200));
        assert_eq!((long.reason.len(), long.action.len()), (128, 128));
        assert_eq!(key("a").action, "Reason");
    }

    #[test]
    fn an_object_name_that_is_invalid_in_an_event_name_is_replaced_by_a_uuid() {
        let mut rng = fastrand::Rng::with_seed(1);
        assert_eq!(key("web").event_name(0x1234_abcd, &mut rng), "web.1234abcd");
        for name in ["system:node", "Upper", "", &"x".repeat(253)] {
            let event = key(name).event_name(1, &mut rng);
            assert!(dns1123_subdomain(&event).is_empty() && event.len() == 36, "{event}");
            assert_eq!(&event[14..15], "4");
        }
    }

    #[test]
    fn the_resource_version_is_not_part_of_the_series_key() {
        let (one, mut other) = (key("web"), key("web"));
        other.regarding.resource_version = Some("7".to_owned());
        assert_eq!(one, other);
        other.regarding.field_path = Some("spec.containers{main}".to_owned());
        assert_ne!(one, other);
    }
}
