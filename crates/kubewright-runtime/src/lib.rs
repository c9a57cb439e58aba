//! The runtime of Kubernetes operators.

mod clock;
mod key;
mod kind;

pub use clock::{Clock, SystemClock, TokioClock};
pub use key::Key;
pub use kind::{Gvk, Kind, Object, Scope};
