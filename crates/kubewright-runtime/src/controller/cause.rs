//! Why a key is reconciled.
//!
//! [`Cause`] is the event of an object that queued the key. The old object is kept only if changes are recorded (see
//! [`RecordChanges`]), and is compared only when they are read. Otherwise a cause needs no allocation.

use std::fmt;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

use super::changed::{Changed, changed};
use crate::cache::{Change, Entry, Informer, Occasion, Removal};
use crate::{Key, Kind};

/// Why a key is reconciled.
///
/// Displayed as in logs: `Deployment default/web modified: status.readyReplicas`.
#[derive(Clone)]
#[non_exhaustive]
pub struct Cause {
    /// What happened.
    pub trigger: Trigger,
    /// The kind of the object; `None` for channels and for requeues of key controllers.
    pub kind: Option<Kind>,
    /// The object; the key itself for retries.
    pub object: Key,
    before: Option<Arc<Before>>,
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Trigger {
    /// The object existed when the controller started.
    Initial,
    /// The object was created.
    Created,
    /// The object was updated.
    Modified,
    /// The object was deleted, or it is not known whether it was deleted or no longer matches the selector.
    Deleted,
    /// The object exists but no longer matches the selector of the watch.
    Deselected,
    /// Nothing happened: all objects are delivered again after the resync period.
    Resync,
    /// A channel requested it.
    Channel,
    /// The last reconcile requested it.
    Requeued,
    /// The last reconcile failed.
    Retried,
}

/// The old object, and the informer with the current one.
struct Before {
    old: Arc<Entry>,
    informer: Arc<Informer>,
    changed: OnceLock<Changed>,
}

/// Whether to record the changed fields. Needed for the journal and for logs at `debug`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecordChanges {
    Yes,
    No,
}

impl Cause {
    /// A cause for an event of an object.
    pub fn new(trigger: Trigger, kind: Option<Kind>, object: Key) -> Self {
        Self { trigger, kind, object, before: None }
    }

    pub(crate) fn of(change: &Change, informer: &Arc<Informer>, record: RecordChanges) -> Self {
        let trigger = match (change.occasion, &change.old, &change.new) {
            (_, _, None) if change.removal == Some(Removal::Deselected) => Trigger::Deselected,
            (_, _, None) => Trigger::Deleted,
            (Occasion::Initial, _, _) => Trigger::Initial,
            (Occasion::Resync, _, _) => Trigger::Resync,
            (Occasion::Event, None, _) => Trigger::Created,
            (Occasion::Event, Some(_), _) => Trigger::Modified,
        };
        let old =
            change.old.as_ref().filter(|_| trigger == Trigger::Modified && record == RecordChanges::Yes);
        let before = old.map(|old| {
            Arc::new(Before { old: old.clone(), informer: informer.clone(), changed: OnceLock::new() })
        });
        Self { trigger, kind: Some(informer.kind().clone()), object: change.latest().key().clone(), before }
    }

    /// The fields that changed. They are computed at the first call, so that several changes merged in the queue count
    /// as one.
    ///
    /// Empty unless the manager writes a journal or the log level is `debug`. Use a
    /// [`Predicate`](super::Predicate) for decisions.
    pub fn changed(&self) -> &Changed {
        static NOTHING: Changed = Changed { paths: Vec::new(), more: 0 };
        let Some(before) = &self.before else { return &NOTHING };
        before.changed.get_or_init(|| match before.informer.entry(&self.object) {
            Some(now) => changed(before.old.json(), now.json()),
            // The object was deleted, which is a separate cause.
            None => Changed::default(),
        })
    }
}

impl Cause {
    /// The current resource version of the object, if changed fields are recorded.
    pub(crate) fn version(&self) -> Option<u64> {
        let before = self.before.as_ref()?;
        before.informer.entry(&self.object).map(|now| now.version())
    }
}

impl Trigger {
    /// The name in logs and in the journal.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Initial => "initial",
            Self::Created => "created",
            Self::Modified => "modified",
            Self::Deleted => "deleted",
            Self::Deselected => "deselected",
            Self::Resync => "resync",
            Self::Channel => "channel",
            Self::Requeued => "requeued",
            Self::Retried => "retried",
        }
    }

    /// Whether the trigger is an event of an object, not of the key.
    pub(crate) fn is_of_an_object(self) -> bool {
        !matches!(self, Self::Channel | Self::Requeued | Self::Retried)
    }
}

/// Two changes of one object are equal, so that the queue merges them. It keeps the earlier one, whose old object
/// precedes both.
impl PartialEq for Cause {
    fn eq(&self, other: &Self) -> bool {
        (self.trigger, &self.kind, &self.object) == (other.trigger, &other.kind, &other.object)
    }
}

impl Eq for Cause {}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.trigger.is_of_an_object() {
            if let Some(kind) = &self.kind {
                write!(f, "{} ", kind.name())?;
            }
            write!(f, "{} ", self.object)?;
        }
        f.write_str(self.trigger.as_str())?;
        let changed = self.changed();
        if changed.paths.is_empty() { Ok(()) } else { write!(f, ": {changed}") }
    }
}

impl fmt::Debug for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_displayed_briefly() {
        let kind = Kind::of::<k8s_openapi::api::apps::v1::Deployment>();
        let cause =
            |trigger| Cause::new(trigger, Some(kind.clone()), Key::namespaced("default", "web")).to_string();
        assert_eq!(cause(Trigger::Initial), "Deployment default/web initial");
        assert_eq!(cause(Trigger::Modified), "Deployment default/web modified");
        assert_eq!(cause(Trigger::Retried), "retried");
        assert_eq!(Cause::new(Trigger::Channel, None, Key::cluster("a")).to_string(), "channel");
    }

    #[test]
    fn logs_and_journal_use_the_same_name() {
        use Trigger::{Channel, Created, Deleted, Initial, Modified, Requeued, Resync, Retried};
        for trigger in [Initial, Created, Modified, Deleted, Resync, Channel, Requeued, Retried] {
            assert_eq!(serde_json::to_value(trigger).unwrap(), trigger.as_str());
        }
    }

    #[test]
    fn a_cause_takes_at_most_forty_bytes() {
        // Every slot of every queue has one.
        assert!(size_of::<Cause>() <= 40, "{}", size_of::<Cause>());
    }
}
