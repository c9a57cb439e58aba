use kubewright_macros::object;

fn main() {
    object! { Deployment {
        metadata: { name: 5, labels: { app: true }, finalizers: "one", annotations: ["a"] },
        spec: {
            replicas: "3",
            minReadySeconds: 3_000_000_000,
            paused: 1,
            progressDeadlineSeconds: 1.5,
            revisionHistoryLimit: null,
            selector: "app=web",
            template: {
                spec: {
                    containers: [{
                        name: "a",
                        imagePullPolicy: "Allways",
                        ports: [{ containerPort: 80, protocol: "HTTP" }],
                        resources: { limits: { cpu: "500 m", memory: "1GB" } },
                        livenessProbe: { httpGet: { port: true } },
                    }, "b"],
                },
            },
        },
    } };
    object! { Secret { metadata: { name: "a" }, data: { password: "not base64" } } };
}
