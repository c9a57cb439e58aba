//! Developing an operator: how long one waits between an idea and seeing it.
//!
//! Wall time of programs as people start them: the command line, and cargo in the project that it made.

mod saves;
mod scaffold;

use anyhow::Result;

use super::{Bench, Suite};
use crate::binary;
use crate::row::{Row, Rows};

pub(crate) const SUITE: Suite = Suite { name: "dev", run };

fn run(bench: &Bench) -> Result<Vec<Row>> {
    let mut rows = Rows::default();
    bench.progress.say("dev: building the program");
    let kubewright = binary::build("kubewright-cli", "kubewright", &[])?;
    let project = scaffold::run(bench, &kubewright, &mut rows)?;
    saves::run(bench, &kubewright, &project, &mut rows)?;
    Ok(rows.into_vec())
}
