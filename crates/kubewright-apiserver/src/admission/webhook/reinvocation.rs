//! Reinvocation: mutating plugins run a second time if a webhook or policy changed the object.
//!
//! The second round calls only webhooks and policies with `reinvocationPolicy: IfNeeded` that ran before the
//! last change.

use std::collections::BTreeSet;

use serde_json::Value;

/// The state of one request across the two rounds.
#[derive(Debug, Default)]
pub(crate) struct Reinvocation {
    /// Whether this is the reinvocation.
    pub(crate) again: bool,
    /// Whether a reinvocation is required.
    needed: bool,
    webhooks: Invoked,
    policies: Invoked,
}

/// The invocations of one plugin.
#[derive(Debug, Default)]
pub(crate) struct Invoked {
    /// Reinvocable, and called since the last change.
    previously: BTreeSet<String>,
    /// To be called in the reinvocation.
    pending: BTreeSet<String>,
    last_output: Option<Value>,
}

impl Reinvocation {
    /// Starts the second round, if one is required.
    pub(crate) fn begin_second_round(&mut self) -> bool {
        if self.needed && !self.again {
            self.again = true;
            return true;
        }
        false
    }

    /// Records that a webhook or policy changed the object.
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
    /// Starts the plugin's second round: if other plugins changed its output, everything reinvocable is
    /// called.
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
