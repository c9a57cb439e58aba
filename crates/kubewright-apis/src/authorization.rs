//! Kinds of authorization.k8s.io: reviews, which are never stored.

pub(crate) mod local_subject_access_review;
mod review_spec;
pub(crate) mod self_subject_access_review;
pub(crate) mod subject_access_review;

use crate::kinds::KindRules;

/// Rules that all kinds share.
const GROUP: KindRules = KindRules { group: "authorization.k8s.io", ..KindRules::DEFAULT };
