struct Manager;

impl Manager {
    #[kubewright_macros::main]
    async fn main(self) -> Result<(), ()> {
        Ok(())
    }
}

fn main() {}
