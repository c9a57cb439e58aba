struct Manager;

#[kubewright_macros::main]
fn main(manager: Manager) -> Result<(), ()> {
    drop(manager);
    Ok(())
}
