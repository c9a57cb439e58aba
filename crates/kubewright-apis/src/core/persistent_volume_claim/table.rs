//! The row of a PersistentVolumeClaim.

use serde_json::Value;

use crate::core::persistent_volume::table::{access_modes, class, phase, storage};
use crate::table::row::{Row, UNSET};

pub(super) fn cells(row: &Row<'_>) -> Vec<Value> {
    let is_bound = !row.str("spec.volumeName").is_empty();
    let (capacity, modes) = if is_bound {
        (storage(row, "status.capacity"), access_modes(row.list("status.accessModes")))
    } else {
        ("".into(), String::new())
    };
    vec![
        row.name(),
        phase(row),
        row.text("spec.volumeName"),
        capacity,
        modes.into(),
        class(row),
        row.optional("spec.volumeAttributesClassName", UNSET),
        row.age(),
        row.optional("spec.volumeMode", UNSET),
    ]
}
