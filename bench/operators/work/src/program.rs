//! An operator as a process of its own.
//!
//! It says `ready` on standard output once it leads and has reconciled as many objects as it was told to expect, and
//! runs until it is killed.

use std::io::Write as _;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};

use crate::{Kind, Operator, Setup, Work};

/// How many objects a process reconciles at once.
const WORKERS: u16 = 16;

/// Runs an operator for the kind, and the number of its objects, that the arguments of the process name.
pub async fn run<O: Operator>() -> Result<()> {
    O::logs()?;
    let mut args = std::env::args().skip(1);
    let kind = match args.next().as_deref() {
        Some("widgets") => Kind::Widgets,
        Some("pods") => Kind::Pods,
        _ => bail!("say what to reconcile, and how many there are: `widgets 1000` or `pods 1000`"),
    };
    let objects: usize = args.next().context("say how many objects there are")?.parse()?;
    let work = Arc::new(Work::new());
    let all = work.expect(objects);
    let setup = Setup { kind, workers: WORKERS, lease: format!("bench-{}", std::process::id()) };
    let operator = O::start(O::connect().await?, setup, work).await?;
    operator.ready().await?;
    if objects > 0 {
        all.await.context("the operator ended")?;
    }
    let mut stdout = std::io::stdout();
    stdout.write_all(b"ready\n")?;
    stdout.flush()?;
    std::future::pending().await
}
