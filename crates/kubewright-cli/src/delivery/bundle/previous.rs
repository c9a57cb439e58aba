//! The bundle on disk, from which a new one takes what is not set.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::pins::Pins;
use super::{ANNOTATIONS, ARCHITECTURE, CSV_FILE, FOLDER};

/// The options in the bundle on disk, from an earlier run or edited by the user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Previous {
    pub(crate) version: Option<String>,
    pub(crate) channels: Vec<String>,
    pub(crate) default_channel: Option<String>,
    pub(crate) replaces: Option<String>,
    pub(crate) skips: Vec<String>,
    pub(crate) skip_range: Option<String>,
    /// The image of the manager.
    pub(crate) image: Option<String>,
    /// The digests of images.
    pub(crate) pins: Pins,
    /// The architectures of the manager's image.
    pub(crate) architectures: BTreeSet<String>,
}

impl Previous {
    /// Reads the bundle of a project; empty if there is none.
    pub(crate) fn read(root: &Path, project: &str) -> Result<Self> {
        let csv = document(root, &format!("{FOLDER}/manifests/{project}{CSV_FILE}"))?;
        let annotations = document(root, &format!("{FOLDER}/metadata/annotations.yaml"))?;
        let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        let annotation = |key: &str| text(&annotations["annotations"][format!("{ANNOTATIONS}{key}")]);
        let channels = annotation("bundle.channels.v1").unwrap_or_default();
        let skips = csv["spec"]["skips"].as_array().into_iter().flatten();
        Ok(Self {
            version: text(&csv["spec"]["version"]),
            channels: channels
                .split(',')
                .filter(|it| !it.is_empty())
                .map(|it| it.trim().to_owned())
                .collect(),
            default_channel: annotation("bundle.channel.default.v1"),
            replaces: text(&csv["spec"]["replaces"]),
            skips: skips.filter_map(&text).collect(),
            skip_range: text(&csv["metadata"]["annotations"]["olm.skipRange"]),
            image: text(&csv["metadata"]["annotations"]["containerImage"]),
            pins: Pins::read(&csv),
            architectures: csv["metadata"]["labels"]
                .as_object()
                .into_iter()
                .flat_map(|labels| labels.keys())
                .filter_map(|label| label.strip_prefix(ARCHITECTURE))
                .map(str::to_owned)
                .collect(),
        })
    }
}

/// A YAML document; null if the file is missing.
fn document(root: &Path, path: &str) -> Result<Value> {
    match fs::read_to_string(root.join(path)) {
        Ok(text) => serde_saphyr::from_str(&text).with_context(|| format!("cannot read {path}")),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Value::Null),
        Err(error) => Err(error).with_context(|| format!("cannot read {path}")),
    }
}
