//! Operator binary.

use kubewright::prelude::*;

#[kubewright::main]
async fn main(manager: Manager) -> Result<()> {
    markdown_view::registry::register(&manager)?;
    manager.run().await
}
