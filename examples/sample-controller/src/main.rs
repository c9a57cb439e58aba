//! Operator binary.

use kubewright::{Manager, Result};

#[kubewright::main]
async fn main(manager: Manager) -> Result<()> {
    sample_controller::registry::register(&manager)?;
    manager.run().await
}
