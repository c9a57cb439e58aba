//! Developing an operator: how long one waits between an idea and seeing it.
//!
//! Wall time of programs as people start them: the command line, and cargo in the project that it made.

mod scaffold;

use anyhow::Result;

use super::{Bench, Suite};
use crate::row::{Row, Rows};

pub(crate) const SUITE: Suite = Suite { name: "dev", run };

fn run(bench: &Bench) -> Result<Vec<Row>> {
    let mut rows = Rows::default();
    scaffold::run(bench, &mut rows)?;
    Ok(rows.into_vec())
}
