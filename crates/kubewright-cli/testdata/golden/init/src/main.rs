//! Operator binary.

use kubewright::prelude::*;

#[kubewright::main]
async fn main(manager: Manager) -> Result<()> {
    shop::registry::register(&manager)?;
    manager.run().await
}
