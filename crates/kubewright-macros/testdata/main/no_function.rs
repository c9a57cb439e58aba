struct Manager;

#[kubewright_macros::main]
struct Operator {
    manager: Manager,
}

fn main() {}
