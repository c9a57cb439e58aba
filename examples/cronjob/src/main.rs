//! Operator binary.

use kubewright::Result;
use kubewright::prelude::*;

#[kubewright::main]
async fn main(manager: Manager) -> Result<()> {
    cronjob::registry::register(&manager)?;
    manager.run().await
}
