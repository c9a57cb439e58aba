//! Developing an operator: durations of scaffolding, builds and the development loop.
//!
//! Measured in wall time of the `kubewright` program and of cargo, in a scaffolded project and in a new clone of this
//! repository.

mod first;
mod saves;
pub(super) mod scaffold;
mod session;

use anyhow::Result;

use super::{Bench, Suite};
use crate::binary;
use crate::row::{Row, Rows};

pub(crate) const SUITE: Suite = Suite { name: "dev", run };

fn run(bench: &Bench) -> Result<Vec<Row>> {
    let mut rows = Rows::default();
    bench.progress.say("dev: building kubewright");
    let kubewright = binary::build("kubewright-cli", "kubewright", &[])?;
    let project = scaffold::run(bench, &kubewright, &mut rows)?;
    saves::run(bench, &kubewright, &project, &mut rows)?;
    first::run(bench, &mut rows)?;
    Ok(rows.into_vec())
}
