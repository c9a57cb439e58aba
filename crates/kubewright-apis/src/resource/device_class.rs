//! DeviceClass.

use crate::kinds::KindRules;
use crate::strategy::{count_change, start_generation};
use crate::table::name_and_age;

pub(crate) const RULES: KindRules = KindRules {
    kind: "DeviceClass",
    prepare_create: start_generation,
    prepare_update: |new, old| count_change(new, old, "spec"),
    cells: name_and_age,
    ..super::GROUP
};
