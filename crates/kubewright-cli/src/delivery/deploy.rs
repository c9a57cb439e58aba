//! Deploys rendered objects to a cluster, waits for the operator, and removes it again.

mod apply;
pub(crate) mod context;
mod diagnosis;
mod failing;
mod remove;
mod resource;
mod rollout;
mod stale;
mod target;

pub(crate) use apply::apply;
pub(crate) use remove::{Removal, remove};
pub(crate) use rollout::wait;
pub(crate) use target::{Nodes, Target};

/// The field manager of `kubectl apply --server-side`. With the same name, `make deploy`, kubectl and
/// `kubewright deploy` can be mixed: fields that are removed from config/ are removed from the objects.
const MANAGER: &str = "kubectl";
