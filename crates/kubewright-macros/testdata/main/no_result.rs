struct Manager;

#[kubewright_macros::main]
async fn main(manager: Manager) {
    drop(manager);
}
