//! Why a key is reconciled.
//!
//! Owns [`Cause`]: what happened to which object, as it goes through the queue to the reconcile. The object as it was
//! before goes along only if somebody will look (see [`Looked`]), and is compared only when somebody does. Otherwise
//! a cause costs no allocation.

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
    pub what: What,
    /// The kind of the object that it happened to; none for channels, and for what controllers of keys ask for.
    pub kind: Option<Kind>,
    /// The object that it happened to; the key itself for retries.
    pub object: Key,
    before: Option<Arc<Before>>,
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum What {
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
    /// Nothing: all objects are looked at again from time to time.
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

/// Whether somebody will look at what changed: a journal, or who reads the log line of each reconcile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Looked {
    At,
    Over,
}

impl Cause {
    /// Something that happened to an object.
    pub fn new(what: What, kind: Option<Kind>, object: Key) -> Self {
        Self { what, kind, object, before: None }
    }

    pub(crate) fn of(change: &Change, informer: &Arc<Informer>, looked: Looked) -> Self {
        let what = match (change.occasion, &change.old, &change.new) {
            (_, _, None) if change.removal == Some(Removal::Deselected) => What::Deselected,
            (_, _, None) => What::Deleted,
            (Occasion::Initial, _, _) => What::Found,
            (Occasion::Resync, _, _) => What::Resync,
            (Occasion::Event, None, _) => What::Created,
            (Occasion::Event, Some(_), _) => What::Changed,
        };
        let old = change.old.as_ref().filter(|_| what == What::Changed && looked == Looked::At);
        let before = old.map(|old| {
            Arc::new(Before { old: old.clone(), informer: informer.clone(), changed: OnceLock::new() })
        });
        Self { what, kind: Some(informer.kind().clone()), object: change.latest().key().clone(), before }
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

impl What {
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
        (self.what, &self.kind, &self.object) == (other.what, &other.kind, &other.object)
    }
}

impl Eq for Cause {}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.what.is_of_an_object() {
            if let Some(kind) = &self.kind {
                write!(f, "{} ", kind.name())?;
            }
            write!(f, "{} ", self.object)?;
        }
        f.write_str(self.what.as_str())?;
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
            |what| Cause::new(what, Some(kind.clone()), Key::namespaced("default", "web")).to_string();
        assert_eq!(cause(What::Found), "Deployment default/web initial");
        assert_eq!(cause(What::Changed), "Deployment default/web modified");
        assert_eq!(cause(What::Retried), "retried");
        assert_eq!(Cause::new(What::Asked, None, Key::cluster("a")).to_string(), "channel");
    }

    #[test]
    fn logs_and_journal_say_the_same_word() {
        use What::{Asked, Changed, Created, Deleted, Found, Requeued, Resync, Retried};
        for what in [Found, Created, Changed, Deleted, Resync, Asked, Requeued, Retried] {
            assert_eq!(serde_json::to_value(what).unwrap(), what.as_str());
        }
    }

    #[test]
    fn a_cause_takes_a_few_words_of_memory() {
        // One is in every slot of every queue.
        assert!(size_of::<Cause>() <= 40, "{}", size_of::<Cause>());
    }
}
