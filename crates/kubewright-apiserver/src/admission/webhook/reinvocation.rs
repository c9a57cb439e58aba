//! Reinvocation: mutating plugins run a second time if a webhook or policy changed the object.
//!
//! In the second round only those webhooks and policies are called that ask for it (`reinvocationPolicy: IfNeeded`)
//! and ran before the last change.

use std::collections::BTreeSet;

use serde_json::Value;

/// What one request remembers between the two rounds.
#[derive(Debug, Default)]
pub(crate) struct Reinvocation {
    /// Whether this is the second round.
    pub(crate) again: bool,
    /// Whether there has to be a second round.
    needed: bool,
    webhooks: Invoked,
    policies: Invoked,
}

/// The invocations of one plugin.
#[derive(Debug, Default)]
pub(crate) struct Invoked {
    /// Reinvocable, and run since the last change.
    previously: BTreeSet<String>,
    /// To be run in the second round.
    pending: BTreeSet<String>,
    last_output: Option<Value>,
}

impl Reinvocation {
    /// Begins the second round, if there has to be one.
    pub(crate) fn begin_second_round(&mut self) -> bool {
        if self.needed && !self.again {
            self.again = true;
            return true;
        }
        false
    }

    /// A webhook or policy changed the object.
    pub(crate) fn changed(&mut self) {
        self.needed = true;
    }

    pub(crate) fn webhooks(&mut self) -> &mut Invoked {
        &mut self.webhooks
    }

    pub(crate) fn policies(&mut self) -> &mut Invoked {
        &mut self.policies
    }
}

impl Invoked {
    /// Begins the plugin's part of the second round: if other plugins changed its output, everything reinvocable runs.
    pub(crate) fn begin_again(&mut self, object: &Value) {
        if self.last_output.as_ref() != Some(object) {
            self.require_previous();
        }
    }

    pub(crate) fn require_previous(&mut self) {
        self.pending.append(&mut self.previously);
    }

    pub(crate) fn is_pending(&self, uid: &str) -> bool {
        self.pending.contains(uid)
    }

    pub(crate) fn ran(&mut self, uid: &str) {
        self.previously.insert(uid.to_owned());
    }

    pub(crate) fn finish(&mut self, object: &Value) {
        self.last_output = Some(object.clone());
    }
}
