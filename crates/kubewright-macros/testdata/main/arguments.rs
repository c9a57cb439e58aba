struct Manager;

#[kubewright_macros::main(threads = 4)]
async fn main(manager: Manager) -> Result<(), ()> {
    drop(manager);
    Ok(())
}
