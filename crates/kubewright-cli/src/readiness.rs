//! Whether an object is ready. The rule is [`kubewright_page::readiness`]; waiting for CRDs is added here.

pub(crate) mod crd;

pub(crate) use kubewright_page::readiness::{Readiness, State, expecting_status, of};
