//! The Deployment of the manager: its template, and the values that come from config/manager.
//!
//! Fields that users of a chart change become values. Arguments, ports and volumes that belong to a switch
//! depend on it. Everything else stays as it is in config/.

use serde_json::{Map, Value, json};

use super::names::Names;
use super::template::{Entry, Item, Node, Part};
use super::values::Setting;
use super::{CERTIFICATES, Features, when};

/// Name of the volume with the webhook certificate.
const VOLUME: &str = "webhook-certs";
/// Secret with the certificate that cert-manager issues.
pub(super) const SECRET: &str = "webhook-server-cert";
/// The default port of the webhook server.
pub(super) const WEBHOOK_PORT: u64 = 9443;
/// Default metrics port, if the manager has none.
const METRICS_PORT: u64 = 8443;
/// Names of ports in the container.
const METRICS: &str = "metrics";
const WEBHOOK: &str = "webhook-server";

/// The Deployment as a template.
#[derive(Debug)]
pub(super) struct Manager {
    pub(super) template: Node,
    /// The settings below `manager`.
    pub(super) settings: Vec<Setting>,
    pub(super) ports: Ports,
    /// Whether config/ enables leader election and metrics.
    pub(super) leader_election: bool,
    pub(super) metrics: bool,
}

/// Ports of the manager.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ports {
    pub(super) metrics: u64,
    pub(super) webhook: u64,
}

impl Manager {
    /// Splits the Deployment of config/ into a template and values.
    pub(super) fn new(deployment: &Value, names: &Names, features: Features) -> Self {
        let mut object = deployment.clone();
        let spec = object["spec"].take();
        let mut template = names.node(&object);
        let mut rest = Rest(spec);
        let replicas = rest.take("/replicas");
        let strategy = rest.take("/strategy");
        let mut pod = Rest(rest.take("/template/spec"));
        let mut containers = match pod.take("/containers") {
            Value::Array(containers) => containers,
            _ => Vec::new(),
        };
        let at = containers.iter().position(|container| container["name"] == "manager").unwrap_or_default();
        let mut container = Rest(containers.get_mut(at).map(Value::take).unwrap_or_default());

        let arguments = arguments(&container.take("/args"), features);
        let ports = Ports {
            metrics: arguments.metrics_port.unwrap_or(METRICS_PORT),
            webhook: port_named(&container.0, WEBHOOK).unwrap_or(WEBHOOK_PORT),
        };
        let environment = environment(&container.take("/env"), names, features);
        let mut settings = settings(&replicas, &strategy, &mut pod, &mut container);
        settings.push(Setting::new(
            "args",
            "Further arguments of the manager. Arguments that belong to other values, such as metrics.port, are added.",
            arguments.values,
            json!({ "type": "array", "items": { "type": "string" } }),
        ));
        settings.push(Setting::objects(
            "env",
            "Environment variables of the manager.",
            environment.values,
            &["name"],
        ));
        let volumes = volume_list(&pod.take("/volumes"), names, features, false);
        let mounts = volume_list(&container.take("/volumeMounts"), names, features, true);
        settings.push(Setting::objects(
            "extraVolumes",
            "Further volumes of the Pod.",
            Value::Null,
            &["name"],
        ));
        settings.push(Setting::objects(
            "extraVolumeMounts",
            "Further volume mounts of the manager.",
            Value::Null,
            &["name", "mountPath"],
        ));

        let container_ports = container_ports(&container.take("/ports"), features);
        let mut node = names.value("", &container.0);
        node.set("image", Node::text(format!("include \"{}\" .", names.template("image"))));
        node.set("imagePullPolicy", Node::text(".Values.manager.image.pullPolicy"));
        node.set("args", Node::List(arguments.items));
        if !container_ports.is_empty() {
            node.set("ports", Node::List(container_ports));
        }
        node.entries().push(environment.entry);
        for field in ["resources", "securityContext"] {
            node.entries().push(Entry::With(field.into(), format!(".Values.manager.{field}")));
        }
        node.entries().push(mounts);
        let containers: Vec<Item> = containers
            .iter()
            .enumerate()
            .map(|(index, other)| if index == at { node.clone() } else { names.value("", other) })
            .map(Item::Node)
            .collect();

        let mut pod = names.value("", &pod.0);
        pod.set("containers", Node::List(containers));
        pod.set(
            "terminationGracePeriodSeconds",
            Node::Action(".Values.manager.terminationGracePeriodSeconds".into()),
        );
        pod.entries()
            .push(Entry::With("securityContext".into(), ".Values.manager.podSecurityContext".into()));
        for field in
            ["imagePullSecrets", "nodeSelector", "tolerations", "affinity", "topologySpreadConstraints"]
        {
            pod.entries().push(Entry::With(field.into(), format!(".Values.manager.{field}")));
        }
        let class = ".Values.manager.priorityClassName";
        let class =
            Entry::If(class.into(), vec![Entry::Field("priorityClassName".into(), Node::text(class))]);
        pod.entries().push(class);
        pod.entries().push(volumes);

        let mut spec = names.value("", &rest.0);
        spec.set("replicas", Node::Action(".Values.manager.replicas".into()));
        spec.entries().push(Entry::With("strategy".into(), ".Values.manager.strategy".into()));
        let metadata = pod_metadata(&rest.0["template"]["metadata"], names);
        spec.set(
            "template",
            Node::Map(vec![Entry::Field("metadata".into(), metadata), Entry::Field("spec".into(), pod)]),
        );
        template.set("spec", spec);
        Self {
            template,
            settings,
            ports,
            leader_election: arguments.leader_election,
            metrics: arguments.metrics_port.is_some(),
        }
    }
}

/// An object from which fields are taken.
struct Rest(Value);

impl Rest {
    /// Removes a field. Null if it is missing.
    fn take(&mut self, pointer: &str) -> Value {
        let (parent, field) = pointer.rsplit_once('/').unwrap_or_default();
        let parent = self.0.pointer_mut(parent).and_then(Value::as_object_mut);
        parent.and_then(|parent| parent.remove(field)).unwrap_or_default()
    }
}

/// Values of the Deployment, its Pod and the manager's container.
fn settings(replicas: &Value, strategy: &Value, pod: &mut Rest, container: &mut Rest) -> Vec<Setting> {
    let image = container.take("/image");
    let (repository, tag, digest) = split(image.as_str().unwrap_or_default());
    let pull_policy = container.take("/imagePullPolicy");
    let policies = json!({ "type": "string", "enum": ["Always", "IfNotPresent", "Never"] });
    let or = |value: Value, other: Value| if value.is_null() { other } else { value };
    vec![
        Setting::switch(
            "enable",
            "Deploy the manager. Without it, only CRDs, RBAC and Services are installed.",
            true,
        ),
        Setting::number(
            "replicas",
            "Number of Pods. With leader election, one of them is active.",
            or(replicas.clone(), json!(1)),
        ),
        Setting::group(
            "image",
            "Image of the manager.",
            vec![
                Setting::text("repository", "Image name without tag and digest.", repository),
                Setting::text("tag", "Image tag. Defaults to the chart's appVersion.", tag),
                Setting::text("digest", "Image digest, such as sha256:... It replaces the tag.", digest),
                Setting::new(
                    "pullPolicy",
                    "When the node pulls the image.",
                    or(pull_policy, json!("IfNotPresent")),
                    policies,
                ),
            ],
        ),
        Setting::objects(
            "imagePullSecrets",
            "Secrets for the image registry.",
            pod.take("/imagePullSecrets"),
            &["name"],
        ),
        Setting::map("resources", "Resource requests and limits.", container.take("/resources")),
        Setting::map("podSecurityContext", "Security context of the Pod.", pod.take("/securityContext")),
        Setting::map(
            "securityContext",
            "Security context of the container.",
            container.take("/securityContext"),
        ),
        Setting::strings("podAnnotations", "Further annotations of the Pod.", Value::Null),
        Setting::strings("podLabels", "Further labels of the Pod.", Value::Null),
        Setting::strings(
            "nodeSelector",
            "Labels of nodes that the Pod can run on.",
            pod.take("/nodeSelector"),
        ),
        Setting::objects("tolerations", "Taints that the Pod tolerates.", pod.take("/tolerations"), &[]),
        Setting::map("affinity", "Affinity of the Pod.", pod.take("/affinity")),
        Setting::objects(
            "topologySpreadConstraints",
            "How Pods are spread over nodes and zones.",
            pod.take("/topologySpreadConstraints"),
            &[],
        ),
        Setting::text(
            "priorityClassName",
            "PriorityClass of the Pod.",
            pod.take("/priorityClassName").as_str().unwrap_or_default(),
        ),
        Setting::number(
            "terminationGracePeriodSeconds",
            "Time for the manager to stop.",
            or(pod.take("/terminationGracePeriodSeconds"), json!(30)),
        ),
        Setting::map("strategy", "Update strategy of the Deployment.", strategy.clone()),
    ]
}

/// Repository, tag and digest of an image.
pub(super) fn split(image: &str) -> (&str, &str, &str) {
    let (name, digest) = image.split_once('@').unwrap_or((image, ""));
    let path = name.rfind('/').map_or(0, |slash| slash + 1);
    match name[path..].rsplit_once(':') {
        Some((_, tag)) => (&name[..name.len() - tag.len() - 1], tag, digest),
        None => (name, "", digest),
    }
}

struct Arguments {
    items: Vec<Item>,
    /// Arguments that are values.
    values: Value,
    metrics_port: Option<u64>,
    leader_election: bool,
}

fn arguments(arguments: &Value, features: Features) -> Arguments {
    let mut found =
        Arguments { items: Vec::new(), values: json!([]), metrics_port: None, leader_election: false };
    let mut values = Vec::new();
    let data = |argument: &str| Item::Node(Node::Data(argument.into()));
    let election = || Item::If(when::LEADER_ELECTION.into(), vec![data("--leader-elect")]);
    let metrics = || {
        let address =
            vec![Part::Data("--metrics-bind-address=:".into()), Part::Action(".Values.metrics.port".into())];
        Item::If(when::METRICS.into(), vec![Item::Node(Node::Text(address))])
    };
    for argument in arguments.as_array().into_iter().flatten().filter_map(Value::as_str) {
        let (name, value) = argument.split_once('=').unwrap_or((argument, ""));
        match name {
            "--leader-elect" => {
                found.leader_election = value != "false";
                found.items.push(election());
            }
            "--metrics-bind-address" => {
                found.metrics_port = value.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
                found.items.push(metrics());
            }
            "--webhook-cert-path" if features.cert_manager.is_some() => {}
            "--webhook-cert-path" if features.webhooks => {
                found.items.push(Item::If(when::WEBHOOKS.into(), vec![data(argument)]));
            }
            "--webhook-port" if features.webhooks => {}
            _ if name.starts_with("--webhook-") || name == "--health-probe-bind-address" => {
                found.items.push(data(argument));
            }
            _ => values.push(Value::from(argument)),
        }
    }
    // The switches work even if config/ does not use them.
    for item in [election(), metrics()] {
        if !found.items.contains(&item) {
            found.items.push(item);
        }
    }
    if let Some(condition) = features.cert_manager {
        let path = data(&format!("--webhook-cert-path={CERTIFICATES}"));
        found.items.push(Item::If(condition.into(), vec![path]));
    }
    if features.webhooks {
        let port = vec![Part::Data("--webhook-port=".into()), Part::Action(".Values.webhook.port".into())];
        let condition = format!("and .Values.webhook.enable (ne (int .Values.webhook.port) {WEBHOOK_PORT})");
        found.items.push(Item::If(condition, vec![Item::Node(Node::Text(port))]));
        found
            .items
            .push(Item::If("not .Values.webhook.enable".into(), vec![data("--webhook-bind-address=0")]));
    }
    found.items.push(Item::Spread(".Values.manager.args".into()));
    found.values = values.into();
    found
}

struct Environment {
    entry: Entry,
    /// Variables that are values.
    values: Value,
}

fn environment(variables: &Value, names: &Names, features: Features) -> Environment {
    let (mut items, mut values) = (Vec::new(), Vec::new());
    let mut always = false;
    for variable in variables.as_array().into_iter().flatten() {
        match names.value("", variable) {
            // Values cannot contain names of the release.
            Node::Data(_) => values.push(variable.clone()),
            node if features.webhooks && variable["name"] == "WEBHOOK_SERVICE_NAME" => {
                items.push(Item::If(when::WEBHOOKS.into(), vec![Item::Node(node)]));
            }
            node => {
                always = true;
                items.push(Item::Node(node));
            }
        }
    }
    let spread = ".Values.manager.env";
    let entry = if items.is_empty() {
        Entry::With("env".into(), spread.into())
    } else {
        items.push(Item::Spread(spread.into()));
        let field = Entry::Field("env".into(), Node::List(items));
        if always { field } else { Entry::If(format!("or {} {spread}", when::WEBHOOKS), vec![field]) }
    };
    Environment { entry, values: values.into() }
}

fn port_named(container: &Value, name: &str) -> Option<u64> {
    let mut ports = container["ports"].as_array()?.iter();
    ports.find(|port| port["name"] == name)?["containerPort"].as_u64()
}

fn container_ports(ports: &Value, features: Features) -> Vec<Item> {
    let items = ports.as_array().into_iter().flatten().map(|port| {
        let from = |value: &str, condition: &str| {
            let mut node = Node::Data(port.clone());
            node.set("containerPort", Node::Action(value.into()));
            Item::If(condition.into(), vec![Item::Node(node)])
        };
        match port["name"].as_str() {
            Some(METRICS) => from(".Values.metrics.port", when::METRICS),
            Some(WEBHOOK) if features.webhooks => from(".Values.webhook.port", when::WEBHOOKS),
            _ => Item::Node(Node::Data(port.clone())),
        }
    });
    items.collect()
}

/// Volumes or volume mounts. That of the certificate depends on webhooks, or on cert-manager.
fn volume_list(source: &Value, names: &Names, features: Features, mounts: bool) -> Entry {
    let (field, value) = if mounts {
        ("volumeMounts", ".Values.manager.extraVolumeMounts")
    } else {
        ("volumes", ".Values.manager.extraVolumes")
    };
    let source = source.as_array().map(Vec::as_slice).unwrap_or_default();
    let (certificate, others): (Vec<&Value>, Vec<&Value>) =
        source.iter().partition(|volume| features.webhooks && volume["name"] == VOLUME);
    let mut items: Vec<Item> = others.iter().map(|volume| Item::Node(names.value("", volume))).collect();
    let always = !items.is_empty();
    let mut condition = None;
    if let Some(when) = features.cert_manager {
        let volume = if mounts {
            json!({ "name": VOLUME, "mountPath": CERTIFICATES, "readOnly": true })
        } else {
            json!({ "name": VOLUME, "secret": { "secretName": SECRET } })
        };
        condition = Some(when);
        items.push(Item::If(when.into(), vec![Item::Node(volume.into())]));
    } else if let Some(volume) = certificate.first() {
        condition = Some(when::WEBHOOKS);
        items.push(Item::If(when::WEBHOOKS.into(), vec![Item::Node(names.value("", volume))]));
    }
    if items.is_empty() {
        return Entry::With(field.into(), value.into());
    }
    items.push(Item::Spread(value.into()));
    let entry = Entry::Field(field.into(), Node::List(items));
    match condition {
        Some(condition) if !always => Entry::If(format!("or ({condition}) {value}"), vec![entry]),
        _ => entry,
    }
}

fn pod_metadata(metadata: &Value, names: &Names) -> Node {
    let mut node = names.value("", metadata);
    for (field, value) in
        [("annotations", ".Values.manager.podAnnotations"), ("labels", ".Values.manager.podLabels")]
    {
        match node.field_mut(field) {
            Some(there) => there.entries().push(Entry::Spread(value.into())),
            None => node.entries().push(Entry::With(field.into(), value.into())),
        }
    }
    if matches!(node, Node::Data(Value::Null)) {
        return Node::Data(Map::new().into());
    }
    node
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_split_into_repository_tag_and_digest() {
        assert_eq!(split("controller:latest"), ("controller", "latest", ""));
        assert_eq!(split("example.com:5000/shop"), ("example.com:5000/shop", "", ""));
        assert_eq!(split("example.com:5000/shop:v1@sha256:00"), ("example.com:5000/shop", "v1", "sha256:00"));
        assert_eq!(split(""), ("", "", ""));
    }
}
