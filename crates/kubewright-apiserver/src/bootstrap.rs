//! The objects that clients expect to find on a fresh server.

use std::sync::Arc;

use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::{facts, time};
use serde_json::Value;

use crate::resources::{Registry, Served};
use crate::server::Inner;
use crate::storage::{Change, Expect, Write};
use crate::write::stored_form;

impl Inner {
    /// Puts them into an empty store, and makes what was before unreachable, as on a server that has just
    /// started.
    pub(crate) fn bootstrap(&self) {
        let now = time::format_rfc3339(self.clock.now());
        let registry = self.registry();
        let mut batch = Vec::new();
        for (path, text) in facts::bootstrap_objects() {
            let Some(served) = find_path(&registry, path) else { continue };
            let Ok(mut object) = serde_json::from_str::<Value>(&self.filled_in(text, &now)) else { continue };
            object.set_at("metadata.uid", self.ids.uid());
            object.set_at("metadata.creationTimestamp", now.as_str());
            for condition in object.list_mut("status.conditions").into_iter().flatten() {
                condition.set_at("lastTransitionTime", now.as_str());
            }
            object.set_at("apiVersion", served.gvk().api_version());
            object.set_at("kind", served.kind());
            if served.normalise(&mut object).is_err() {
                continue;
            }
            let key = served.key(object.str_at("metadata.namespace"), object.str_at("metadata.name"));
            let (object, attributes) = stored_form(served, object);
            batch.push(Write {
                resource: served.storage.clone(),
                key: Arc::from(key),
                expect: Expect::Absent,
                change: Change::Put { object, attributes },
            });
        }
        if let Err(conflict) = self.store.commit(batch) {
            tracing::error!(%conflict, "the first objects could not be written");
        }
        self.store.forget_past();
    }
}

impl Inner {
    /// The text of an object with what differs from server to server.
    fn filled_in(&self, text: &str, now: &str) -> String {
        if !text.contains('<') {
            return text.to_owned();
        }
        text.replace(r#""client-ca-file":"<set at start>""#, "")
            .replace("<set at start>", &now[..10])
            .replace("<host>", "localhost")
            .replace("<hash>", &self.ids.uid().replace('-', "")[..26])
            .replace("<identity>", &self.ids.uid())
    }
}

fn find_path<'a>(registry: &'a Registry, path: &str) -> Option<&'a Arc<Served>> {
    let parts: Vec<&str> = path.split('/').collect();
    match parts[..] {
        ["api", version, plural] => registry.find("", version, plural),
        ["apis", group, version, plural] => registry.find(group, version, plural),
        _ => None,
    }
}
