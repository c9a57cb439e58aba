//! Parts for other crates of this workspace. Not public API: they change without notice.
//!
//! The facade `kubewright` re-exports none of them.

#![doc(hidden)]

pub use kubewright_sync::ordered_watch;

pub use crate::connect::{Observe, ObserveLayer};
pub use crate::election::{Election, ElectionEnd, ElectionMetrics, Leadership};
pub use crate::fence::{Deadline, Fence, Fenced};
pub use crate::manager::{ControllerManifest, ConversionManifest, ManagerManifest};
pub use crate::webhook::{certificates, probe};

/// Certificates of servers.
pub mod certs {
    pub use crate::certs::*;
}

/// The debug page of a manager.
pub mod debug_page {
    pub use crate::debug_page::*;
    pub use crate::logs::output::copy_lines;
}

/// Decoders that debug builds share.
pub mod decode {
    pub use crate::decode::COMMON;
}

/// The journal of reconciles.
pub mod journal {
    pub use crate::journal::*;
}

/// Validators of names.
pub mod names {
    pub use kubewright_apimachinery::names::dns1123_label;
}

/// The panic hook.
pub mod panics {
    pub use crate::panics::install;
}

/// The HTTP server.
pub mod serve {
    pub use crate::serve::*;
}

/// The export of traces.
#[cfg(feature = "otlp")]
pub mod traces {
    pub use crate::traces::*;
}
