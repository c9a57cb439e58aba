//! The digests of a bundle's images.
//!
//! OLM and mirrors of disconnected clusters need images by digest. The ClusterServiceVersion records which tag a
//! digest was resolved from, so that `kubewright bundle --check` needs no registry.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::delivery::image::resolve::is_pinned;
use crate::delivery::rendered::Rendered;

/// The annotation of the ClusterServiceVersion with the record, as JSON.
pub(crate) const ANNOTATION: &str = "kubewright.dev/pinned-images";
/// Prefix of variables with images that the operator uses.
const RELATED: &str = "RELATED_IMAGE_";

/// Images by digest, by the image with its tag.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pins(BTreeMap<String, String>);

impl Pins {
    /// Reads the record of a ClusterServiceVersion.
    pub(super) fn read(csv: &Value) -> Self {
        let text = csv["metadata"]["annotations"][ANNOTATION].as_str().unwrap_or_default();
        Self(serde_json::from_str(text).unwrap_or_default())
    }

    /// The record, if there is anything to record.
    pub(super) fn record(&self) -> Option<String> {
        (!self.0.is_empty()).then(|| serde_json::json!(self.0).to_string())
    }

    /// The recorded image by digest.
    pub(crate) fn get(&self, image: &str) -> Option<&str> {
        self.0.get(image).map(String::as_str)
    }

    /// Replaces the images of all containers and of variables `RELATED_IMAGE_*` by what `find` returns. Entries of
    /// `previous` whose image is still used are kept.
    pub(crate) fn pin(
        objects: &mut Rendered,
        previous: &Self,
        mut find: impl FnMut(&str) -> Option<String>,
    ) -> Self {
        let mut pins = Self::default();
        let mut used = BTreeSet::new();
        for image in images(objects) {
            let Some(text) = image.as_str().map(str::to_owned) else { continue };
            let pinned = match pins.get(&text) {
                Some(pinned) => Some(pinned.to_owned()),
                None if is_pinned(&text) => None,
                None => find(&text),
            };
            if let Some(pinned) = pinned {
                *image = pinned.as_str().into();
                pins.0.insert(text, pinned);
            } else {
                used.insert(text);
            }
        }
        let kept = previous.0.iter().filter(|(_, image)| used.contains(*image));
        pins.0.extend(kept.map(|(tag, image)| (tag.clone(), image.clone())));
        pins
    }
}

/// The images of a bundle that have no digest.
pub(crate) fn unpinned(objects: &mut Rendered) -> BTreeSet<String> {
    let images = images(objects).filter_map(|image| image.as_str().map(str::to_owned));
    images.filter(|image| !is_pinned(image)).collect()
}

fn images(objects: &mut Rendered) -> impl Iterator<Item = &mut Value> {
    objects.containers_mut().flat_map(|container| {
        let fields = container.as_object_mut().into_iter().flatten();
        fields.flat_map(|(field, value)| -> Vec<&mut Value> {
            match (field.as_str(), value) {
                ("image", image) => vec![image],
                ("env", Value::Array(variables)) => variables.iter_mut().filter_map(related).collect(),
                _ => Vec::new(),
            }
        })
    })
}

fn related(variable: &mut Value) -> Option<&mut Value> {
    let is_related = variable["name"].as_str().is_some_and(|name| name.starts_with(RELATED));
    variable.get_mut("value").filter(|_| is_related)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEPLOYMENT: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop}
spec:
  template:
    spec:
      containers:
      - name: manager
        image: example.com/shop:v1
        env:
        - {name: RELATED_IMAGE_PROXY, value: 'example.com/proxy:v1'}
        - {name: OTHER, value: 'example.com/other:v1'}
        - {name: RELATED_IMAGE_FIELD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
      - {name: proxy, image: 'example.com/proxy:v1'}
      - {name: local, image: 'local:v1'}
      - {name: pinned, image: 'example.com/pinned@sha256:00'}
";

    #[test]
    fn all_images_are_pinned_and_recorded() {
        let mut objects = Rendered::parse(DEPLOYMENT).unwrap();
        let mut asked = Vec::new();
        let previous = Pins(BTreeMap::from([
            ("example.com/pinned:v9".to_owned(), "example.com/pinned@sha256:00".to_owned()),
            ("example.com/gone:v9".to_owned(), "example.com/gone@sha256:00".to_owned()),
        ]));
        let pins = Pins::pin(&mut objects, &previous, |image| {
            asked.push(image.to_owned());
            image.starts_with("example.com").then(|| image.replace(":v1", "@sha256:11"))
        });
        asked.sort();
        assert_eq!(asked, ["example.com/proxy:v1", "example.com/shop:v1", "local:v1"]);
        let text = objects.to_yaml();
        assert_eq!(text.matches("example.com/proxy@sha256:11").count(), 2, "{text}");
        assert!(text.contains("example.com/other:v1"), "{text}");
        assert_eq!(unpinned(&mut objects), BTreeSet::from(["local:v1".to_owned()]));
        let csv = serde_json::json!({"metadata": {"annotations": {ANNOTATION: pins.record()}}});
        assert_eq!(Pins::read(&csv), pins);
        assert_eq!(
            pins.0.keys().map(String::as_str).collect::<Vec<_>>(),
            ["example.com/pinned:v9", "example.com/proxy:v1", "example.com/shop:v1"]
        );
        assert_eq!(Pins::default().record(), None);
    }
}
