//! Operator binary.

use kubewright::{Manager, Result};

#[kubewright::main]
async fn main(manager: Manager) -> Result<()> {
    markdown_view::registry::register(&manager)?;
    manager.run().await
}
