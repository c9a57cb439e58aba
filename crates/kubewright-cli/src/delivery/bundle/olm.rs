//! Texts of `#[olm(...)]` attributes, which override what the bundle derives from manifests.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, anyhow};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kubewright_manifests::declare::Olm;
use kubewright_manifests::inventory::Inventory;
use serde_json::{Value, json};

use crate::error::Hint as _;

/// The media types of icons by file extension.
const ICONS: [(&str, &str); 5] = [
    ("svg", "image/svg+xml"),
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("gif", "image/gif"),
];

/// Overrides the texts of an owned CRD.
pub(super) fn describe(entry: &mut Value, group: &str, kind: &str, inventory: &Inventory) {
    for olm in inventory.olm().filter(|it| it.group == group && it.kind == kind) {
        for (field, text) in [("displayName", &olm.display_name), ("description", &olm.description)] {
            if !text.is_empty() {
                entry[field] = text.as_str().into();
            }
        }
    }
}

/// Overrides the annotations of the ClusterServiceVersion.
pub(super) fn annotate(annotations: &mut Value, inventory: &Inventory) {
    if let Some(level) = first(inventory, |olm| &olm.capabilities) {
        annotations["capabilities"] = level.into();
    }
    if let Some(olm) = inventory.olm().find(|olm| !olm.categories.is_empty()) {
        annotations["categories"] = olm.categories.join(", ").into();
    }
}

/// The icon of the operator, as the ClusterServiceVersion has it.
pub(crate) fn icon(root: &Path, inventory: &Inventory) -> Result<Option<Value>> {
    let Some(path) = first(inventory, |olm| &olm.icon) else { return Ok(None) };
    let extension = path.rsplit('.').next().unwrap_or_default().to_lowercase();
    let media_type = ICONS.iter().find(|(name, _)| *name == extension).map(|(_, media_type)| *media_type);
    let media_type = media_type
        .ok_or_else(|| anyhow!("{path} is not an icon"))
        .hint("use an SVG, PNG, JPEG or GIF file in `#[olm(icon = \"...\")]`")?;
    let data = fs::read(root.join(path))
        .with_context(|| format!("cannot read the icon {path}"))
        .hint("the path in `#[olm(icon = \"...\")]` is relative to the project")?;
    Ok(Some(json!({ "base64data": STANDARD.encode(data), "mediatype": media_type })))
}

fn first(inventory: &Inventory, text: fn(&Olm) -> &String) -> Option<&str> {
    inventory.olm().map(text).find(|text| !text.is_empty()).map(String::as_str)
}

#[cfg(test)]
mod tests {
    use kubewright_manifests::declare::Declared;

    use super::*;

    fn declared(olm: Olm) -> Inventory {
        let mut inventory = Inventory::new("shop");
        inventory.declared.push(Declared::Olm(olm));
        inventory
    }

    #[test]
    fn texts_override_those_of_the_kind_only() {
        let inventory = declared(Olm {
            group: "sales.example.com".into(),
            kind: "Order".into(),
            display_name: "Web Order".into(),
            capabilities: "Deep Insights".into(),
            categories: vec!["Database".into(), "Storage".into()],
            ..Olm::default()
        });
        let default = json!({ "displayName": "Order", "description": "An order." });
        let mut order = default.clone();
        describe(&mut order, "sales.example.com", "Order", &inventory);
        assert_eq!(order, json!({ "displayName": "Web Order", "description": "An order." }));
        let mut other = default.clone();
        describe(&mut other, "sales.example.com", "Invoice", &inventory);
        assert_eq!(other, default);
        let mut annotations = json!({ "capabilities": "Basic Install" });
        annotate(&mut annotations, &inventory);
        let expected = json!({ "capabilities": "Deep Insights", "categories": "Database, Storage" });
        assert_eq!(annotations, expected);
        let mut annotations = json!({ "capabilities": "Basic Install" });
        annotate(&mut annotations, &Inventory::new("shop"));
        assert_eq!(annotations, json!({ "capabilities": "Basic Install" }));
    }

    #[test]
    fn the_icon_is_a_file_of_the_project() {
        let folder = tempfile::tempdir().unwrap();
        let of = |path: &str| declared(Olm { icon: path.into(), ..Olm::default() });
        fs::write(folder.path().join("icon.svg"), "<svg/>").unwrap();
        let found = icon(folder.path(), &of("icon.svg")).unwrap();
        assert_eq!(found, Some(json!({ "base64data": "PHN2Zy8+", "mediatype": "image/svg+xml" })));
        assert_eq!(icon(folder.path(), &Inventory::new("shop")).unwrap(), None);
        let missing = icon(folder.path(), &of("gone.png")).unwrap_err();
        assert_eq!(missing.to_string(), "cannot read the icon gone.png");
        assert_eq!(icon(folder.path(), &of("icon.txt")).unwrap_err().to_string(), "icon.txt is not an icon");
    }
}
