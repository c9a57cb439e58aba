use kubewright_macros::object;

fn main() {
    object! { Deployment {
        metadata: { name: "web", lables: { app: "web" } },
        spec: {
            replica: 3,
            selector: { matchlabels: { app: "web" } },
            containers: [],
            template: {
                spec: {
                    containers: [
                        { name: "a", imagePullPolcy: "Always" },
                        { name: "b", whatever: 1 },
                    ],
                },
            },
        },
        "stauts": {},
    } };
    object! { Guestbook { metadata: { nmae: "visitors" }, spec: { anything: 1 } } };
}
