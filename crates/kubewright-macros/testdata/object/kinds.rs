use kubewright_macros::object;

fn main() {
    object! { Event { metadata: { name: "a" } } };
    object! { HorizontalPodAutoscaler { metadata: { name: "a" } } };
    object! { apps::v1::Deploymnt { metadata: { name: "a" } } };
    object! { "apps/v1beta1" Deployment { metadata: { name: "a" } } };
    object! { "example.com/v1" Guestbook { metadata: { name: "a" } } };
    object! { PodList { items: [] } };
}
