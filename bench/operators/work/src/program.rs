//! Runs an operator as a process.
//!
//! Prints `ready` to standard output after it has become leader and reconciled the expected number of
//! objects, then runs until it is killed.

use std::io::Write as _;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};

use crate::{Kind, Operator, Setup, WebhookServer, Work, webhook};

/// Maximum number of concurrent reconciles.
const WORKERS: u16 = 16;

/// Runs an operator. The process arguments are the kind and the expected number of objects, or `webhooks` and the files of
/// a certificate and its key.
pub async fn run<O: Operator + WebhookServer>() -> Result<()> {
    O::logs()?;
    let mut args = std::env::args().skip(1);
    let kind = match args.next().as_deref() {
        Some("widgets") => Kind::Widgets,
        Some("pods") => Kind::Pods,
        Some("webhooks") => return webhook::run::<O>(args).await,
        _ => bail!("expected a kind and a number of objects: `widgets 1000` or `pods 1000`"),
    };
    let objects: usize = args.next().context("missing number of objects")?.parse()?;
    let work = Arc::new(Work::new());
    let all = work.expect(objects);
    let setup = Setup { kind, workers: WORKERS, lease: format!("bench-{}", std::process::id()) };
    let operator = O::start(O::connect().await?, setup, work).await?;
    operator.ready().await?;
    if objects > 0 {
        all.await.context("the operator stopped")?;
    }
    let mut stdout = std::io::stdout();
    stdout.write_all(b"ready\n")?;
    stdout.flush()?;
    std::future::pending().await
}
