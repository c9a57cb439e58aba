//! Operator binary.

use kubewright::{Manager, Result};

#[kubewright::main]
async fn main(manager: Manager) -> Result<()> {
    collector::registry::register(&manager)?;
    manager.run().await
}
