struct Manager;

#[kubewright_macros::main]
async fn main<M>(manager: M) -> Result<(), ()> {
    drop(manager);
    Ok(())
}
