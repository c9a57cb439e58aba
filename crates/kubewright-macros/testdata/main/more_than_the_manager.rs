struct Manager;

#[kubewright_macros::main]
async fn main(manager: Manager, arguments: Vec<String>) -> Result<(), ()> {
    drop((manager, arguments));
    Ok(())
}
