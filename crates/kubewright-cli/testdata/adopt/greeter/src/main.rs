//! Operator binary.

use greeter::controller;
use kube::Client;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let client = Client::try_default().await?;
    controller::run(client).await;
    Ok(())
}
