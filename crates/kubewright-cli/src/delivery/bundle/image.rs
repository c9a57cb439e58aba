//! The image of a bundle: what bundle.Dockerfile builds, without a container runtime.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::FOLDER;
use crate::delivery::image::{self, Image, layer::Files};
use crate::error::Hint as _;

/// The directories of the image, as bundle.Dockerfile copies them.
const COPIED: [&str; 3] = ["manifests", "metadata", "tests/scorecard"];

/// Reads the bundle of a project, and assembles its image. The labels are the annotations of the bundle.
pub(crate) fn build(root: &Path) -> Result<Image> {
    let bundle = root.join(FOLDER);
    let file = bundle.join("metadata/annotations.yaml");
    let text = fs::read_to_string(&file)
        .with_context(|| format!("cannot read {}", file.display()))
        .hint("`kubewright bundle` generates it")?;
    let annotations: Value =
        serde_saphyr::from_str(&text).with_context(|| format!("cannot read {}", file.display()))?;
    let labels: BTreeMap<String, String> = annotations["annotations"]
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .collect();
    let mut files = Files::default();
    for folder in COPIED {
        add(&mut files, &bundle.join(folder), &format!("/{folder}"))?;
    }
    image::of_data(&files, "OLM bundle", &labels)
}

/// Adds the files of a directory. A bundle without the directory, such as one without tests, is valid.
fn add(files: &mut Files, folder: &Path, place: &str) -> Result<()> {
    if !folder.is_dir() {
        return Ok(());
    }
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry.with_context(|| format!("cannot read {}", folder.display()))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let place = format!("{place}/{name}");
        if path.is_dir() {
            add(files, &path, &place)?;
        } else {
            let data = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
            files.add(&place, 0o644, data);
        }
    }
    Ok(())
}
