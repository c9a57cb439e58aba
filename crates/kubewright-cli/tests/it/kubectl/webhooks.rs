//! Webhooks in Rust on 127.0.0.1, called by the server over TLS: defaulting, validation and conversion, as
//! kubectl shows them.

use std::collections::BTreeMap;
use std::future::pending;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::CustomResource;
use kubewright_runtime::internal::certs::Certificates;
use kubewright_runtime::internal::serve::{BindAddress, Handler, Server};
use kubewright_runtime::webhook::certificates::Material;
use kubewright_runtime::webhook::{
    AdmissionRequest, BoxError, Conversion, Defaulter, Rejection, Spoke, Validation, Validator, Webhooks,
};
use kubewright_runtime::{Clock as _, SystemClock};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::runtime::Runtime;

use super::cluster::Cluster;

/// A webhook server, stopped when it is dropped.
struct Hooks {
    base: String,
    ca: String,
    _runtime: Runtime,
}

impl Hooks {
    fn serve(webhooks: Webhooks) -> Self {
        let runtime = Runtime::new().expect("a runtime");
        let names = ["127.0.0.1".to_owned()];
        let material = Material::create(&names, SystemClock.now()).expect("a certificate");
        let leaf = &material.leaf;
        let certificates =
            Certificates::from_pem(leaf.certificate.as_bytes(), leaf.key.as_bytes()).expect("a pair");
        let address: BindAddress = "127.0.0.1:0".parse().expect("an address");
        let server = runtime.block_on(Server::bind(&address, "address")).expect("a free port");
        let server = server.expect("the address is not off").with_tls(certificates);
        let base = format!("https://{}", server.address());
        let handler = Handler::new(move |request| {
            let webhooks = webhooks.clone();
            async move { webhooks.handle(request).await }
        });
        runtime.spawn(server.run(handler, pending()));
        Self { base, ca: STANDARD.encode(material.bundle()), _runtime: runtime }
    }

    /// A `clientConfig` for a path, as a flow mapping.
    fn client(&self, path: &str) -> String {
        format!("{{url: '{}{path}', caBundle: {}}}", self.base, self.ca)
    }

    /// A webhook configuration for ConfigMaps.
    fn configuration(&self, kind: &str, path: &str) -> String {
        format!(
            "apiVersion: admissionregistration.k8s.io/v1
kind: {kind}WebhookConfiguration
metadata: {{name: maps}}
webhooks:
- name: maps.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  clientConfig: {}
  rules:
  - {{apiGroups: [''], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [configmaps]}}
",
            self.client(path)
        )
    }
}

struct CreatedBy;

impl Defaulter for CreatedBy {
    type Object = ConfigMap;

    async fn default(&self, map: &mut ConfigMap, request: &AdmissionRequest) -> Result<(), Rejection> {
        let labels = map.metadata.labels.get_or_insert_default();
        labels.entry("created-by".to_owned()).or_insert_with(|| request.user_info.username.clone());
        Ok(())
    }
}

struct FewKeys;

impl Validator for FewKeys {
    type Object = ConfigMap;

    async fn validate_create(&self, map: &ConfigMap, v: &mut Validation<'_>) -> Result<(), Rejection> {
        let data = map.data.as_ref();
        if data.is_some_and(|data| data.len() > 1) {
            v.invalid("data", data.map_or(0, BTreeMap::len), "must have at most one key");
        }
        if data.is_some_and(|data| data.contains_key("password")) {
            v.forbidden("data.password", "use a Secret");
        }
        if data.is_none_or(BTreeMap::is_empty) {
            v.warn("the ConfigMap is empty");
        }
        Ok(())
    }
}

#[test]
fn a_mutating_webhook_sets_defaults_for_kubectl_apply() {
    let webhooks = Webhooks::new();
    webhooks.defaulter("/mutate", CreatedBy).unwrap();
    let hooks = Hooks::serve(webhooks);
    let cluster = Cluster::with(&hooks.configuration("Mutating", "/mutate"));
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {key: '1'}\n";
    assert_eq!(cluster.feed("apply -f -", map).result(), "configmap/a created\n");
    let labels = "get configmap a -o jsonpath={.metadata.labels}";
    assert_eq!(cluster.kubectl(labels).result(), r#"{"created-by":"admin"}"#);
    // `kubectl diff` does not report the change of the webhook.
    assert_eq!(cluster.feed("apply -f -", map).result(), "configmap/a unchanged\n");
    assert_eq!(cluster.feed("diff -f -", map).result(), "");
    cluster.kubectl("label configmap a created-by-").result();
    assert_eq!(cluster.kubectl(labels).result(), r#"{"created-by":"admin"}"#);
}

#[test]
fn a_validating_webhook_shows_all_errors_and_warnings() {
    let webhooks = Webhooks::new();
    webhooks.validator("/validate", FewKeys).unwrap();
    let hooks = Hooks::serve(webhooks);
    let cluster = Cluster::with(&hooks.configuration("Validating", "/validate"));
    let bad = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bad}\ndata: {a: '1', b: '2', password: x}\n";
    let denied = cluster.feed("apply -f -", bad).to_string();
    for error in
        ["data: Invalid value: 3: must have at most one key", "data.password: Forbidden: use a Secret"]
    {
        assert!(denied.contains(error), "{denied}");
    }
    assert!(denied.ends_with("--- exit status 1\n"), "{denied}");
    assert_eq!(
        cluster.kubectl("create configmap empty").to_string(),
        "configmap/empty created\n--- stderr\nWarning: the ConfigMap is empty\n"
    );
    assert_eq!(cluster.kubectl("get configmaps -o name").result(), "configmap/empty\n");
}

/// `make deploy` of an operator with these webhooks.
fn deployed(webhooks: &[&str]) -> String {
    let mut text = "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\n\
                    metadata: {name: shop}\nwebhooks:\n"
        .to_owned();
    for name in webhooks {
        let service = format!("{{name: webhook-service, namespace: shop-system, path: /{name}}}");
        text += "- admissionReviewVersions: [v1]\n  sideEffects: None\n";
        text.extend(["  name: ", name, ".example.com\n  clientConfig: {service: ", &service, "}\n"]);
    }
    text
}

#[test]
fn a_webhook_can_be_removed_after_the_injection_of_the_ca() {
    let cluster = Cluster::start();
    let apply = "apply --server-side --force-conflicts -f -";
    cluster.feed(apply, &deployed(&["a", "b"])).result();
    // As the manager injects its CA.
    let ca = r#"{"name":"a.example.com","clientConfig":{"caBundle":"YQ=="}},{"name":"b.example.com","clientConfig":{"caBundle":"YQ=="}}"#;
    let inject = format!(
        "patch validatingwebhookconfiguration shop --type=strategic --field-manager=kubewright-webhook-ca -p '{{\"webhooks\":[{ca}]}}'"
    );
    cluster.kubectl(&inject).result();
    let webhooks = "get validatingwebhookconfiguration shop \
                    -o jsonpath={range.webhooks[*]}{.name}:{.clientConfig.caBundle},{end}";
    assert_eq!(cluster.kubectl(webhooks).result(), "a.example.com:YQ==,b.example.com:YQ==,");
    cluster.feed(apply, &deployed(&["b"])).result();
    assert_eq!(cluster.kubectl(webhooks).result(), "b.example.com:YQ==,");
    // Renamed.
    cluster.feed(apply, &deployed(&["c"])).result();
    assert_eq!(cluster.kubectl(webhooks).result(), "c.example.com:,");
}

mod v1 {
    use super::{CustomResource, Deserialize, JsonSchema, Serialize};

    #[derive(CustomResource, JsonSchema, Serialize, Deserialize, Clone, Debug)]
    #[kube(group = "shop.example.com", version = "v1", kind = "Order", namespaced)]
    #[serde(rename_all = "camelCase")]
    pub(super) struct OrderSpec {
        pub(super) customer: String,
        /// In cents; v2 has no such field.
        #[serde(default)]
        pub(super) discount: i64,
    }
}

mod v2 {
    use super::{CustomResource, Deserialize, JsonSchema, Serialize};

    #[derive(CustomResource, JsonSchema, Serialize, Deserialize, Clone, Debug)]
    #[kube(group = "shop.example.com", version = "v2", kind = "Order", namespaced)]
    pub(super) struct OrderSpec {
        pub(super) buyer: Buyer,
    }

    #[derive(JsonSchema, Serialize, Deserialize, Clone, Debug)]
    pub(super) struct Buyer {
        pub(super) name: String,
    }
}

impl Spoke for v2::Order {
    type Hub = v1::Order;

    fn to_hub(&self) -> Result<v1::Order, BoxError> {
        let spec = v1::OrderSpec { customer: self.spec.buyer.name.clone(), discount: 0 };
        Ok(v1::Order { metadata: self.metadata.clone(), spec })
    }

    fn from_hub(hub: &v1::Order) -> Result<Self, BoxError> {
        let spec = v2::OrderSpec { buyer: v2::Buyer { name: hub.spec.customer.clone() } };
        Ok(Self { metadata: hub.metadata.clone(), spec })
    }
}

fn orders(hooks: &Hooks) -> String {
    let version = |name: &str, storage: bool, column: &str| {
        format!(
            "  - name: {name}
    served: true
    storage: {storage}
    schema: {{openAPIV3Schema: {{type: object, x-kubernetes-preserve-unknown-fields: true}}}}
    additionalPrinterColumns: [{{name: By, type: string, jsonPath: {column}}}]
"
        )
    };
    format!(
        "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: orders.shop.example.com}}
spec:
  group: shop.example.com
  scope: Namespaced
  names: {{kind: Order, plural: orders, singular: order}}
  conversion:
    strategy: Webhook
    webhook: {{conversionReviewVersions: [v1], clientConfig: {}}}
  versions:
{}{}",
        hooks.client("/convert"),
        version("v1", true, ".spec.customer"),
        version("v2", false, ".spec.buyer.name"),
    )
}

#[test]
fn an_object_applied_as_v1_is_read_as_v2_and_back() {
    let webhooks = Webhooks::new();
    webhooks.conversion(Conversion::hub::<v1::Order>().spoke::<v2::Order>()).unwrap();
    let hooks = Hooks::serve(webhooks);
    let cluster = Cluster::with(&orders(&hooks));
    cluster.kubectl("wait --for=condition=Established crd/orders.shop.example.com --timeout=50s").result();
    let first = "apiVersion: shop.example.com/v1\nkind: Order\nmetadata: {name: first}\n\
                 spec: {customer: jane, discount: 5}\n";
    assert_eq!(cluster.feed("apply -f -", first).result(), "order.shop.example.com/first created\n");
    let read = |version: &str, name: &str| {
        let line =
            format!("get orders.{version}.shop.example.com {name} -o 'jsonpath={{.apiVersion}} {{.spec}}'");
        cluster.kubectl(&line).result()
    };
    assert_eq!(read("v2", "first"), r#"shop.example.com/v2 {"buyer":{"name":"jane"}}"#);
    assert_eq!(read("v1", "first"), r#"shop.example.com/v1 {"customer":"jane","discount":5}"#);

    // A write of v2 keeps the field that v2 lacks.
    let patch =
        r#"patch orders.v2.shop.example.com first --type merge -p '{"spec":{"buyer":{"name":"joe"}}}'"#;
    cluster.kubectl(patch).result();
    assert_eq!(read("v1", "first"), r#"shop.example.com/v1 {"customer":"joe","discount":5}"#);

    let second = "apiVersion: shop.example.com/v2\nkind: Order\nmetadata: {name: second}\n\
                  spec: {buyer: {name: max}}\n";
    assert_eq!(cluster.feed("apply -f -", second).result(), "order.shop.example.com/second created\n");
    assert_eq!(cluster.feed("apply -f -", second).result(), "order.shop.example.com/second unchanged\n");
    assert_eq!(read("v1", "second"), r#"shop.example.com/v1 {"customer":"max","discount":0}"#);
    // Tables, field by field, in both versions.
    for version in ["v1", "v2"] {
        let table = cluster.kubectl(&format!("get orders.{version}.shop.example.com")).result();
        let cells: Vec<&str> = table.split_whitespace().collect();
        assert_eq!(cells, ["NAME", "BY", "first", "joe", "second", "max"]);
    }
    let stored = "get crd orders.shop.example.com -o jsonpath={.status.storedVersions}";
    assert_eq!(cluster.kubectl(stored).result(), r#"["v1"]"#);
}
