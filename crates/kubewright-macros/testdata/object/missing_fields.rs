use kubewright_macros::object;

fn main() {
    object! { Deployment {
        metadata: { name: "web" },
        spec: {
            replicas: 3,
            template: { spec: { containers: [{ image: "nginx" }] } },
        },
    } };
    object! { Service { metadata: { name: "web" }, spec: { ports: [{ name: "http" }] } } };
}
