use kubewright_macros::ApplyConfiguration;

#[derive(ApplyConfiguration)]
struct Typo {
    #[apply(nesetd)]
    value: Inner,
}

#[derive(serde::Serialize, ApplyConfiguration)]
struct Flat {
    #[serde(flatten)]
    value: Inner,
}

#[derive(serde::Serialize, ApplyConfiguration)]
struct OwnWay {
    #[serde(with = "inner")]
    #[apply(nested)]
    value: Inner,
}

#[derive(serde::Serialize)]
struct Inner {}

mod inner {
    use super::Inner;

    pub(super) fn serialize<S: serde::Serializer>(_: &Inner, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_unit()
    }
}

fn main() {}
