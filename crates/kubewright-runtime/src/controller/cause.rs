//! Why a key is reconciled.
//!
//! Owns [`Cause`]: what happened to which object, as it goes through the queue to the reconcile. The object as it was
//! before is kept only if changes are recorded (see [`RecordChanges`]), and is compared only when they are read. Otherwise a
//! cause costs no allocation.

use std::fmt;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

use super::changed::{Changed, changed};
use crate::cache::{Change, Entry, Informer, Occasion, Removal};
use crate::{Key, Kind};

/// Why a key is reconciled.
///
/// As text it is what logs say: `Deployment default/web modified: status.readyReplicas`.
#[derive(Clone)]
pub struct Cause {
    /// What happened.
    pub trigger: Trigger,
    /// The kind of the object that it happened to; none for channels, and for what controllers of keys ask for.
    pub kind: Option<Kind>,
    /// The object that it happened to; the key itself for retries.
    pub object: Key,
    before: Option<Arc<Before>>,
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Trigger {
    /// The object was there when the controller started.
    #[serde(rename = "initial")]
    Found,
    /// The object was created.
    Created,
    /// The object was changed.
    #[serde(rename = "modified")]
    Changed,
    /// The object was deleted, or it is not known whether it was deleted or left the selection.
    Deleted,
    /// The object exists, and no longer matches the selector of the watch.
    Deselected,
    /// Nothing: the resync period ended, and all objects are delivered again.
    Resync,
    /// A channel asked for it.
    #[serde(rename = "channel")]
    Asked,
    /// The last reconcile asked for it.
    Requeued,
    /// The last reconcile failed.
    Retried,
}

/// The object before it changed, and where to find it as it is now.
struct Before {
    old: Arc<Entry>,
    informer: Arc<Informer>,
    changed: OnceLock<Changed>,
}

/// Whether to record the changed fields: for the journal, and for the log at `debug`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecordChanges {
    Yes,
    No,
}

impl Cause {
    /// Something that happened to an object.
    pub fn new(trigger: Trigger, kind: Option<Kind>, object: Key) -> Self {
        Self { trigger, kind, object, before: None }
    }

    pub(crate) fn of(change: &Change, informer: &Arc<Informer>, record: RecordChanges) -> Self {
        let trigger = match (change.occasion, &change.old, &change.new) {
            (_, _, None) if change.removal == Some(Removal::Deselected) => Trigger::Deselected,
            (_, _, None) => Trigger::Deleted,
            (Occasion::Initial, _, _) => Trigger::Found,
            (Occasion::Resync, _, _) => Trigger::Resync,
            (Occasion::Event, None, _) => Trigger::Created,
            (Occasion::Event, Some(_), _) => Trigger::Changed,
        };
        let old = change.old.as_ref().filter(|_| trigger == Trigger::Changed && record == RecordChanges::Yes);
        let before = old.map(|old| {
            Arc::new(Before { old: old.clone(), informer: informer.clone(), changed: OnceLock::new() })
        });
        Self { trigger, kind: Some(informer.kind().clone()), object: change.latest().key().clone(), before }
    }

    /// Which fields of a changed object are others than before. They are found when this is called first, so that
    /// several changes that were joined in the queue are one.
    ///
    /// Nothing unless somebody looks: it is known where the manager writes a [journal](crate::journal), and where the
    /// log level lets the line through that each reconcile begins with (`debug`). To decide anything by what changed,
    /// use a [`Predicate`](super::Predicate).
    pub fn changed(&self) -> &Changed {
        static NOTHING: Changed = Changed { paths: Vec::new(), more: 0 };
        let Some(before) = &self.before else { return &NOTHING };
        before.changed.get_or_init(|| match before.informer.entry(&self.object) {
            Some(now) => changed(before.old.json(), now.json()),
            // It is gone meanwhile, which is a cause of its own.
            None => Changed::default(),
        })
    }
}

impl Trigger {
    /// The word for it, in logs and in the [journal](crate::journal).
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Found => "initial",
            Self::Created => "created",
            Self::Changed => "modified",
            Self::Deleted => "deleted",
            Self::Deselected => "deselected",
            Self::Resync => "resync",
            Self::Asked => "channel",
            Self::Requeued => "requeued",
            Self::Retried => "retried",
        }
    }

    /// Whether it happened to an object, not to the key.
    pub(crate) fn is_of_an_object(self) -> bool {
        !matches!(self, Self::Asked | Self::Requeued | Self::Retried)
    }
}

/// Two changes of one object are one cause: in the queue they are joined, and the earlier one, which is kept, is from
/// before both.
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
    fn a_cause_is_said_in_a_few_words() {
        let kind = Kind::of::<k8s_openapi::api::apps::v1::Deployment>();
        let cause =
            |trigger| Cause::new(trigger, Some(kind.clone()), Key::namespaced("default", "web")).to_string();
        assert_eq!(cause(Trigger::Found), "Deployment default/web initial");
        assert_eq!(cause(Trigger::Changed), "Deployment default/web modified");
        assert_eq!(cause(Trigger::Retried), "retried");
        assert_eq!(Cause::new(Trigger::Asked, None, Key::cluster("a")).to_string(), "channel");
    }

    #[test]
    fn logs_and_journal_say_the_same_word() {
        use Trigger::{Asked, Changed, Created, Deleted, Found, Requeued, Resync, Retried};
        for trigger in [Found, Created, Changed, Deleted, Resync, Asked, Requeued, Retried] {
            assert_eq!(serde_json::to_value(trigger).unwrap(), trigger.as_str());
        }
    }

    #[test]
    fn a_cause_takes_a_few_words_of_memory() {
        // One is in every slot of every queue.
        assert!(size_of::<Cause>() <= 40, "{}", size_of::<Cause>());
    }
}
