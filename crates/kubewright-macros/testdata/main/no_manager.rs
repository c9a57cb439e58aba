struct Manager;

#[kubewright_macros::main]
async fn main() -> Result<(), ()> {
    Ok(())
}
