//! The benchmark operator on kube-rs as a program.

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    kubewright_bench_work::run::<kubewright_bench_peer::Peer>().await
}
