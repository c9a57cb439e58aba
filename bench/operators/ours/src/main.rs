//! The benchmark operator on kubewright-runtime as a program.

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    kubewright_bench_work::run::<kubewright_bench_ours::Ours>().await
}
