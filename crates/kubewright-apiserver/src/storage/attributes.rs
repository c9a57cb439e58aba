//! What selectors and indexes need of an object, so that they do not have to decode it.

use std::cmp::Ordering;

use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::selector::Labels;
use kubewright_apis::selectable::Selectable;
use serde_json::Value;

/// The attributes that selectors and indexes need without decoding the object.
///
/// All strings share one allocation, because a cluster has hundreds of thousands of these.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Attributes {
    /// The strings one after the other: the UID, the key and value of each label, the values of the selectable fields,
    /// and the UIDs of the owners.
    text: Box<str>,
    /// Where each string ends.
    ends: Box<[u32]>,
    /// How many labels there are.
    labels: u32,
    deleting: bool,
    /// The labels of the selectable fields; `None` for kinds that only have name and namespace.
    selectable: Option<&'static Selectable>,
}

impl Attributes {
    /// The attributes of an object in its storage version, with the fields of `selectable`.
    pub(crate) fn of(selectable: Option<&'static Selectable>, object: &Value) -> Self {
        let labels = object.map_at("metadata.labels").iter();
        let labels = labels.map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()));
        let owners = object.list_at("metadata.ownerReferences").iter().map(|owner| owner.str_at("uid"));
        let mut packed = Packed::new(object.str_at("metadata.uid"), labels);
        packed.extend(selectable.iter().flat_map(|selectable| selectable.values(object)));
        packed.extend(owners);
        Self { selectable, deleting: object.has("metadata.deletionTimestamp"), ..packed.finish() }
    }

    /// The attributes of an object that has nothing but a UID and labels, sorted by key.
    pub(crate) fn with_labels<'a>(uid: &str, labels: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        Packed::new(uid, labels).finish()
    }

    /// These attributes with another UID.
    pub(crate) fn with_uid(&self, uid: &str) -> Self {
        let mut packed = Packed::new(uid, []);
        packed.extend((1..self.ends.len()).map(|at| self.string(at)));
        Self { labels: self.labels, deleting: self.deleting, selectable: self.selectable, ..packed.finish() }
    }

    /// `metadata.uid`.
    pub fn uid(&self) -> &str {
        self.string(0)
    }

    /// Whether `metadata.deletionTimestamp` is set.
    pub fn is_deleting(&self) -> bool {
        self.deleting
    }

    /// `metadata.labels`, sorted by key.
    pub fn labels(&self) -> impl Iterator<Item = (&str, &str)> {
        (0..self.labels as usize).map(|at| (self.string(1 + 2 * at), self.string(2 + 2 * at)))
    }

    /// The value of a selectable field other than name and namespace; `None` for an unknown label.
    pub fn field(&self, label: &str) -> Option<&str> {
        let at = self.selectable?.position(label)?;
        Some(self.string(1 + 2 * self.labels as usize + at))
    }

    /// The UIDs of `metadata.ownerReferences`.
    pub fn owners(&self) -> impl Iterator<Item = &str> {
        let fields = self.selectable.map_or(0, Selectable::count);
        let first = 1 + 2 * self.labels as usize + fields;
        (first..self.ends.len()).map(|at| self.string(at))
    }

    /// Whether the object has owner references.
    pub fn has_owners(&self) -> bool {
        self.owners().next().is_some()
    }

    /// A string by its position; empty if there is none.
    fn string(&self, at: usize) -> &str {
        let Some(end) = self.ends.get(at) else { return "" };
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.text[start as usize..*end as usize]
    }
}

impl Labels for Attributes {
    fn label(&self, key: &str) -> Option<&str> {
        let (mut low, mut high) = (0, self.labels as usize);
        while low < high {
            let middle = low.midpoint(high);
            match self.string(1 + 2 * middle).cmp(key) {
                Ordering::Less => low = middle + 1,
                Ordering::Equal => return Some(self.string(2 + 2 * middle)),
                Ordering::Greater => high = middle,
            }
        }
        None
    }
}

/// Builds [`Attributes`].
struct Packed {
    text: String,
    ends: Vec<u32>,
    labels: u32,
}

impl Packed {
    fn new<'a>(uid: &str, labels: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut packed = Self { text: String::with_capacity(256), ends: Vec::with_capacity(32), labels: 0 };
        packed.extend([uid]);
        for (key, value) in labels {
            packed.extend([key, value]);
            packed.labels += 1;
        }
        packed
    }

    fn extend<S: AsRef<str>>(&mut self, strings: impl IntoIterator<Item = S>) {
        for string in strings {
            self.text.push_str(string.as_ref());
            self.ends.push(u32::try_from(self.text.len()).expect("an object is smaller than 4 GiB"));
        }
    }

    fn finish(self) -> Attributes {
        let Self { text, ends, labels } = self;
        Attributes { text: text.into(), ends: ends.into(), labels, ..Attributes::default() }
    }
}

#[cfg(test)]
mod tests {
    use kubewright_apimachinery::gvk::Gvk;
    use kubewright_apis::selectable;
    use serde_json::json;

    use super::*;

    fn pod() -> Attributes {
        let pods = selectable::own(Gvk { group: "", version: "v1", kind: "Pod" });
        let pod = json!({
            "metadata": {
                "name": "p", "namespace": "n", "uid": "u",
                "labels": {"app": "web", "tier": "", "zone": "b"},
                "ownerReferences": [{"uid": "o-1"}, {"uid": "o-2"}],
            },
            "spec": {"nodeName": "n1"},
        });
        Attributes::of(pods, &pod)
    }

    #[test]
    fn attributes_are_those_of_the_object() {
        let pod = pod();
        assert_eq!((pod.uid(), pod.is_deleting(), pod.has_owners()), ("u", false, true));
        assert_eq!(pod.labels().collect::<Vec<_>>(), [("app", "web"), ("tier", ""), ("zone", "b")]);
        for (label, value) in [
            ("app", Some("web")),
            ("tier", Some("")),
            ("zone", Some("b")),
            ("a", None),
            ("web", None),
            ("zz", None),
        ] {
            assert_eq!(pod.label(label), value, "{label}");
        }
        assert_eq!(pod.field("spec.nodeName"), Some("n1"));
        assert_eq!(pod.field("spec.hostNetwork"), Some("false"));
        assert_eq!(pod.field("status.phase"), Some(""));
        assert_eq!(pod.field("spec.replicas"), None);
        assert_eq!(pod.owners().collect::<Vec<_>>(), ["o-1", "o-2"]);
    }

    #[test]
    fn a_new_uid_changes_nothing_else() {
        let (old, new) = (pod(), pod().with_uid("longer"));
        assert_eq!(new.uid(), "longer");
        assert_eq!(new.with_uid("u"), old);
        assert_eq!(Attributes::default().with_uid("u"), Attributes::with_labels("u", []));
    }

    #[test]
    fn no_attributes_are_empty() {
        let none = Attributes::default();
        assert_eq!((none.uid(), none.is_deleting(), none.has_owners()), ("", false, false));
        assert_eq!((none.labels().count(), none.owners().count()), (0, 0));
        assert_eq!((none.label("app"), none.field("spec.nodeName")), (None, None));
    }
}
