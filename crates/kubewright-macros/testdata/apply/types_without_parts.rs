use kubewright_macros::ApplyConfiguration;

#[derive(ApplyConfiguration)]
enum Colour {
    Red,
}

#[derive(ApplyConfiguration)]
struct Pair(i32, i32);

#[derive(ApplyConfiguration)]
struct Generic<T> {
    value: T,
}

#[derive(serde::Serialize, ApplyConfiguration)]
#[serde(transparent)]
struct Transparent {
    value: i32,
}

#[derive(ApplyConfiguration)]
#[apply(nested)]
struct OnStruct {
    value: i32,
}

fn main() {}
