//! The Pod Security Standards: the checks of each level, by version.

use std::collections::BTreeSet;

use kubewright_apimachinery::object::Fields as _;
use serde_json::Value;

use super::policy::{Level, LevelVersion};

/// The newest version in which a check changed.
const LATEST: u64 = 35;

/// The parts of a pod that checks need.
struct Pod<'a> {
    metadata: &'a Value,
    spec: &'a Value,
}

impl<'a> Pod<'a> {
    fn containers(&self) -> impl Iterator<Item = &'a Value> {
        let lists = ["initContainers", "containers", "ephemeralContainers"];
        let spec = self.spec;
        lists.into_iter().flat_map(move |list| spec.list_at(list))
    }

    /// The names of the containers that satisfy a condition.
    fn containers_where(&self, holds: impl Fn(&Value) -> bool) -> Vec<&'a str> {
        self.containers()
            .filter(|container| holds(container))
            .map(|container| container.str_at("name"))
            .collect()
    }

    fn is_windows(&self) -> bool {
        self.spec.str_at("os.name") == "windows"
    }

    /// The pod runs in a user namespace, so root in the pod is not root on the node.
    fn has_user_namespace(&self) -> bool {
        self.spec.at("hostUsers").as_bool() == Some(false)
    }
}

/// Reason and detail of a violation.
type Violation = (String, String);

/// Violations, in the order of upstream's checks.
#[derive(Default)]
pub(super) struct Violations(Vec<Violation>);

impl Violations {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn reasons(&self) -> String {
        let reasons: Vec<&str> = self.0.iter().map(|(reason, _)| reason.as_str()).collect();
        reasons.join(", ")
    }

    pub(super) fn details(&self) -> String {
        let all: Vec<String> = self
            .0
            .iter()
            .map(
                |(reason, detail)| {
                    if detail.is_empty() { reason.clone() } else { format!("{reason} ({detail})") }
                },
            )
            .collect();
        all.join(", ")
    }
}

/// Checks a pod against a standard.
pub(super) fn evaluate(standard: LevelVersion, metadata: &Value, spec: &Value) -> Violations {
    if standard.level == Level::Privileged {
        return Violations::default();
    }
    let version = standard.version.0.unwrap_or(LATEST).min(LATEST);
    let pod = &Pod { metadata, spec };
    let restricted = standard.level == Level::Restricted;
    let relaxed = version >= LATEST && pod.has_user_namespace();
    let windows = version >= 25 && pod.is_windows();
    let baseline = [
        app_armor(pod),
        // The restricted check replaces the baseline check.
        (!(restricted && version >= 22)).then(|| added_capabilities(pod)).flatten(),
        host_namespaces(pod),
        (!restricted).then(|| host_path_volumes(pod)).flatten(),
        host_ports(pod),
        (version >= 34).then(|| probe_hosts(pod)).flatten(),
        privileged(pod),
        (!(relaxed || restricted && version >= LATEST)).then(|| proc_mount(pod)).flatten(),
        se_linux(pod, version),
        match version {
            0..19 => seccomp_annotations(pod),
            _ if restricted => None,
            _ => seccomp(pod, false),
        },
        sysctls(pod, version),
        host_process(pod),
    ];
    let mut found: Vec<Violation> = baseline.into_iter().flatten().collect();
    if restricted {
        let checks = [
            (version >= 8 && !windows).then(|| privilege_escalation(pod)).flatten(),
            (version >= 22 && !windows).then(|| restricted_capabilities(pod)).flatten(),
            (version >= LATEST).then(|| proc_mount(pod)).flatten(),
            restricted_volumes(pod),
            (!relaxed).then(|| run_as_non_root(pod)).flatten(),
            (version >= 23 && !relaxed).then(|| run_as_user(pod)).flatten(),
            (version >= 19 && !windows).then(|| seccomp(pod, true)).flatten(),
        ];
        found.extend(checks.into_iter().flatten());
    }
    Violations(found)
}

fn quoted<T: AsRef<str>>(items: impl IntoIterator<Item = T>) -> String {
    let items: Vec<String> = items.into_iter().map(|item| format!("\"{}\"", item.as_ref())).collect();
    items.join(", ")
}

fn plural<'a>(one: &'a str, many: &'a str, count: usize) -> &'a str {
    if count == 1 { one } else { many }
}

/// `container "a"` or `containers "a", "b"`.
fn named(containers: &[&str]) -> String {
    format!("{} {}", plural("container", "containers", containers.len()), quoted(containers))
}

/// Names the pod and the containers that set a forbidden value.
fn setters(pod: bool, containers: &[&str]) -> String {
    let mut setters = Vec::new();
    if pod {
        setters.push("pod".to_owned());
    }
    if !containers.is_empty() {
        setters.push(named(containers));
    }
    setters.join(" and ")
}

fn violation(reason: &str, detail: String) -> Violation {
    (reason.to_owned(), detail)
}

fn app_armor(pod: &Pod<'_>) -> Option<Violation> {
    const PREFIX: &str = "container.apparmor.security.beta.kubernetes.io/";
    let path = "securityContext.appArmorProfile";
    let bad = |holder: &Value| {
        let profile = holder.at(path);
        !profile.is_null() && !matches!(profile.str_at("type"), "RuntimeDefault" | "Localhost")
    };
    let kind = |holder: &Value| holder.at(path).str_at("type").to_owned();
    let mut values = BTreeSet::new();
    let mut who = Vec::new();
    if bad(pod.spec) {
        who.push("pod".to_owned());
        values.insert(kind(pod.spec));
    }
    let containers = pod.containers_where(bad);
    values.extend(pod.containers().filter(|container| bad(container)).map(kind));
    if !containers.is_empty() {
        who.push(named(&containers));
    }
    let mut annotations: Vec<String> = pod
        .metadata
        .map_at("annotations")
        .iter()
        .filter(|(key, _)| key.starts_with(PREFIX))
        .map(|(key, value)| (key, value.as_str().unwrap_or_default()))
        .filter(|(_, value)| {
            !value.is_empty() && *value != "runtime/default" && !value.starts_with("localhost/")
        })
        .map(|(key, value)| format!("{key}={value:?}"))
        .collect();
    annotations.sort();
    let mut values: Vec<String> = values.into_iter().collect();
    if !annotations.is_empty() {
        who.push(plural("annotation", "annotations", annotations.len()).to_owned());
        values.extend(annotations);
    }
    if who.is_empty() {
        return None;
    }
    Some(violation(
        plural("forbidden AppArmor profile", "forbidden AppArmor profiles", values.len()),
        format!("{} must not set AppArmor profile type to {}", who.join(" and "), quoted(&values)),
    ))
}

fn added(container: &Value) -> impl Iterator<Item = &str> {
    container.list_at("securityContext.capabilities.add").iter().filter_map(Value::as_str)
}

fn added_capabilities(pod: &Pod<'_>) -> Option<Violation> {
    let allowed = |capability: &str| {
        matches!(
            capability,
            "AUDIT_WRITE"
                | "CHOWN"
                | "DAC_OVERRIDE"
                | "FOWNER"
                | "FSETID"
                | "KILL"
                | "MKNOD"
                | "NET_BIND_SERVICE"
                | "SETFCAP"
                | "SETGID"
                | "SETPCAP"
                | "SETUID"
                | "SYS_CHROOT"
        )
    };
    let bad = pod.containers_where(|container| added(container).any(|capability| !allowed(capability)));
    let capabilities: BTreeSet<&str> = pod.containers().flat_map(added).filter(|c| !allowed(c)).collect();
    (!bad.is_empty()).then(|| {
        let detail = format!(
            "{} must not include {} in securityContext.capabilities.add",
            named(&bad),
            quoted(capabilities)
        );
        ("non-default capabilities".to_owned(), detail)
    })
}

fn restricted_capabilities(pod: &Pod<'_>) -> Option<Violation> {
    let keeps = pod.containers_where(|container| {
        !container.list_at("securityContext.capabilities.drop").iter().any(|dropped| dropped == "ALL")
    });
    let adds = pod.containers_where(|container| added(container).any(|c| c != "NET_BIND_SERVICE"));
    let capabilities: BTreeSet<&str> =
        pod.containers().flat_map(added).filter(|c| *c != "NET_BIND_SERVICE").collect();
    let mut details = Vec::new();
    if !keeps.is_empty() {
        details.push(format!("{} must set securityContext.capabilities.drop=[\"ALL\"]", named(&keeps)));
    }
    if !adds.is_empty() {
        details.push(format!(
            "{} must not include {} in securityContext.capabilities.add",
            named(&adds),
            quoted(capabilities)
        ));
    }
    if details.is_empty() { None } else { Some(violation("unrestricted capabilities", details.join("; "))) }
}

fn host_namespaces(pod: &Pod<'_>) -> Option<Violation> {
    let used: Vec<String> = ["hostNetwork", "hostPID", "hostIPC"]
        .into_iter()
        .filter(|field| pod.spec.bool_at(field))
        .map(|field| format!("{field}=true"))
        .collect();
    if used.is_empty() { None } else { Some(violation("host namespaces", used.join(", "))) }
}

fn host_path_volumes(pod: &Pod<'_>) -> Option<Violation> {
    let volumes = pod.spec.list_at("volumes").iter().filter(|volume| volume.has("hostPath"));
    let names: Vec<&str> = volumes.map(|volume| volume.str_at("name")).collect();
    if names.is_empty() {
        return None;
    }
    Some(violation(
        "hostPath volumes",
        format!("{} {}", plural("volume", "volumes", names.len()), quoted(&names)),
    ))
}

fn host_ports(pod: &Pod<'_>) -> Option<Violation> {
    let ports = |container: &Value| -> Vec<String> {
        let ports = container.list_at("ports").iter().filter_map(|port| port.int_at("hostPort"));
        ports.filter(|port| *port != 0).map(|port| port.to_string()).collect()
    };
    let bad = pod.containers_where(|container| !ports(container).is_empty());
    let used: BTreeSet<String> = pod.containers().flat_map(ports).collect();
    if bad.is_empty() {
        return None;
    }
    let (count, used) = (used.len(), used.into_iter().collect::<Vec<_>>().join(", "));
    Some(violation(
        "hostPort",
        format!(
            "{} {} {} {used}",
            named(&bad),
            plural("uses", "use", bad.len()),
            plural("hostPort", "hostPorts", count)
        ),
    ))
}

fn probe_hosts(pod: &Pod<'_>) -> Option<Violation> {
    let hosts = |container: &Value| -> Vec<String> {
        let handlers =
            ["livenessProbe", "readinessProbe", "startupProbe", "lifecycle.postStart", "lifecycle.preStop"];
        let hosts = handlers.into_iter().flat_map(|handler| {
            ["httpGet", "tcpSocket"].map(|kind| container.at(handler).at(kind).str_at("host").to_owned())
        });
        hosts.filter(|host| !host.is_empty()).collect()
    };
    let bad: BTreeSet<&str> =
        pod.containers_where(|container| !hosts(container).is_empty()).into_iter().collect();
    let bad: Vec<&str> = bad.into_iter().collect();
    let used: BTreeSet<String> = pod.containers().flat_map(hosts).collect();
    if bad.is_empty() {
        return None;
    }
    Some(violation(
        "probe or lifecycle host",
        format!(
            "{} {} {} {}",
            named(&bad),
            plural("uses", "use", bad.len()),
            plural("probe or lifecycle host", "probe or lifecycle hosts", used.len()),
            quoted(&used)
        ),
    ))
}

fn privileged(pod: &Pod<'_>) -> Option<Violation> {
    let bad = pod.containers_where(|container| container.bool_at("securityContext.privileged"));
    if bad.is_empty() {
        return None;
    }
    Some(violation("privileged", format!("{} must not set securityContext.privileged=true", named(&bad))))
}

fn proc_mount(pod: &Pod<'_>) -> Option<Violation> {
    let mount = |container: &Value| -> Option<String> {
        let mount = container.at("securityContext.procMount").as_str()?;
        (mount != "Default").then(|| mount.to_owned())
    };
    let bad = pod.containers_where(|container| mount(container).is_some());
    let mounts: BTreeSet<String> = pod.containers().filter_map(mount).collect();
    if bad.is_empty() {
        return None;
    }
    Some(violation(
        "procMount",
        format!("{} must not set securityContext.procMount to {}", named(&bad), quoted(&mounts)),
    ))
}

fn se_linux(pod: &Pod<'_>, version: u64) -> Option<Violation> {
    let options = |holder: &Value| holder.at("securityContext.seLinuxOptions").clone();
    let bad_type = |options: &Value| {
        let allowed = match options.str_at("type") {
            "" | "container_t" | "container_init_t" | "container_kvm_t" => true,
            "container_engine_t" => version >= 31,
            _ => false,
        };
        !allowed
    };
    let bad = |holder: &Value| {
        let options = options(holder);
        bad_type(&options) || !options.str_at("user").is_empty() || !options.str_at("role").is_empty()
    };
    let containers = pod.containers_where(bad);
    let pod_is_bad = bad(pod.spec);
    if containers.is_empty() && !pod_is_bad {
        return None;
    }
    let all: Vec<Value> = std::iter::once(pod.spec).chain(pod.containers()).map(options).collect();
    let types: BTreeSet<&str> =
        all.iter().filter(|options| bad_type(options)).map(|options| options.str_at("type")).collect();
    let mut data = Vec::new();
    if !types.is_empty() {
        data.push(format!("{} {}", plural("type", "types", types.len()), quoted(&types)));
    }
    for field in ["user", "role"] {
        if all.iter().any(|options| !options.str_at(field).is_empty()) {
            data.push(format!("{field} may not be set"));
        }
    }
    Some(violation(
        "seLinuxOptions",
        format!(
            "{} set forbidden securityContext.seLinuxOptions: {}",
            setters(pod_is_bad, &containers),
            data.join("; ")
        ),
    ))
}

fn seccomp_annotations(pod: &Pod<'_>) -> Option<Violation> {
    let allowed = |value: &str| {
        matches!(value, "runtime/default" | "docker/default") || value.starts_with("localhost/")
    };
    let keys = std::iter::once("seccomp.security.alpha.kubernetes.io/pod".to_owned()).chain(
        pod.containers().map(|container| {
            format!("container.seccomp.security.alpha.kubernetes.io/{}", container.str_at("name"))
        }),
    );
    let annotations = pod.metadata.map_at("annotations");
    let forbidden: BTreeSet<String> = keys
        .filter_map(|key| {
            let value = annotations.get(&key)?.as_str()?;
            (!allowed(value)).then(|| format!("{key}={value:?}"))
        })
        .collect();
    if forbidden.is_empty() {
        return None;
    }
    let (count, list) = (forbidden.len(), forbidden.into_iter().collect::<Vec<_>>().join(", "));
    Some(violation(
        "seccompProfile",
        format!("forbidden {} {list}", plural("annotation", "annotations", count)),
    ))
}

/// `required`: every container must have a profile, set on the container or the pod.
fn seccomp(pod: &Pod<'_>, required: bool) -> Option<Violation> {
    let path = "securityContext.seccompProfile";
    let valid = |holder: &Value| matches!(holder.at(path).str_at("type"), "Localhost" | "RuntimeDefault");
    let bad = |holder: &Value| holder.has(path) && !valid(holder);
    let explicit = pod.containers_where(bad);
    if bad(pod.spec) || !explicit.is_empty() {
        let holders = std::iter::once(pod.spec).chain(pod.containers()).filter(|holder| bad(holder));
        let values: BTreeSet<&str> = holders.map(|holder| holder.at(path).str_at("type")).collect();
        return Some(violation(
            "seccompProfile",
            format!(
                "{} must not set securityContext.seccompProfile.type to {}",
                setters(bad(pod.spec), &explicit),
                quoted(&values)
            ),
        ));
    }
    let implicit = pod.containers_where(|container| !container.has(path));
    if !required || implicit.is_empty() || valid(pod.spec) {
        return None;
    }
    Some(violation(
        "seccompProfile",
        format!(
            "pod or {} must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\"",
            named(&implicit)
        ),
    ))
}

fn sysctls(pod: &Pod<'_>, version: u64) -> Option<Violation> {
    let allowed = |name: &str| match name {
        "kernel.shm_rmid_forced"
        | "net.ipv4.ip_local_port_range"
        | "net.ipv4.tcp_syncookies"
        | "net.ipv4.ping_group_range"
        | "net.ipv4.ip_unprivileged_port_start" => true,
        "net.ipv4.ip_local_reserved_ports" => version >= 27,
        "net.ipv4.tcp_keepalive_time"
        | "net.ipv4.tcp_fin_timeout"
        | "net.ipv4.tcp_keepalive_intvl"
        | "net.ipv4.tcp_keepalive_probes" => version >= 29,
        "net.ipv4.tcp_rmem" | "net.ipv4.tcp_wmem" => version >= 32,
        _ => false,
    };
    let names = pod.spec.list_at("securityContext.sysctls").iter().map(|sysctl| sysctl.str_at("name"));
    let forbidden: Vec<&str> = names.filter(|name| !allowed(name)).collect();
    if forbidden.is_empty() { None } else { Some(violation("forbidden sysctls", forbidden.join(", "))) }
}

fn host_process(pod: &Pod<'_>) -> Option<Violation> {
    let bad = |holder: &Value| holder.bool_at("securityContext.windowsOptions.hostProcess");
    let containers = pod.containers_where(bad);
    let who = setters(bad(pod.spec), &containers);
    if who.is_empty() {
        return None;
    }
    Some(violation(
        "hostProcess",
        format!("{who} must not set securityContext.windowsOptions.hostProcess=true"),
    ))
}

fn privilege_escalation(pod: &Pod<'_>) -> Option<Violation> {
    let bad = pod.containers_where(|container| {
        container.at("securityContext.allowPrivilegeEscalation").as_bool() != Some(false)
    });
    if bad.is_empty() {
        return None;
    }
    Some(violation(
        "allowPrivilegeEscalation != false",
        format!("{} must set securityContext.allowPrivilegeEscalation=false", named(&bad)),
    ))
}

fn restricted_volumes(pod: &Pod<'_>) -> Option<Violation> {
    const ALLOWED: [&str; 9] = [
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "image",
        "persistentVolumeClaim",
        "projected",
        "secret",
    ];
    const KNOWN: [&str; 21] = [
        "hostPath",
        "gcePersistentDisk",
        "awsElasticBlockStore",
        "gitRepo",
        "nfs",
        "iscsi",
        "glusterfs",
        "rbd",
        "flexVolume",
        "cinder",
        "cephfs",
        "flocker",
        "fc",
        "azureFile",
        "vsphereVolume",
        "quobyte",
        "azureDisk",
        "photonPersistentDisk",
        "portworxVolume",
        "scaleIO",
        "storageos",
    ];
    let volumes = pod.spec.list_at("volumes").iter();
    let bad: Vec<&Value> =
        volumes.filter(|volume| !ALLOWED.iter().any(|source| volume.has(source))).collect();
    if bad.is_empty() {
        return None;
    }
    let names: Vec<&str> = bad.iter().map(|volume| volume.str_at("name")).collect();
    let source = |volume: &&Value| KNOWN.into_iter().find(|source| volume.has(source)).unwrap_or("unknown");
    let types: BTreeSet<&str> = bad.iter().map(source).collect();
    Some(violation(
        "restricted volume types",
        format!(
            "{} {} {} {} {}",
            plural("volume", "volumes", names.len()),
            quoted(&names),
            plural("uses", "use", names.len()),
            plural("restricted volume type", "restricted volume types", types.len()),
            quoted(&types)
        ),
    ))
}

fn run_as_non_root(pod: &Pod<'_>) -> Option<Violation> {
    let set = |holder: &Value| holder.at("securityContext.runAsNonRoot").as_bool();
    let explicit = pod.containers_where(|container| set(container) == Some(false));
    let who = setters(set(pod.spec) == Some(false), &explicit);
    let reason = "runAsNonRoot != true";
    if !who.is_empty() {
        return Some(violation(reason, format!("{who} must not set securityContext.runAsNonRoot=false")));
    }
    let implicit = pod.containers_where(|container| set(container).is_none());
    if implicit.is_empty() || set(pod.spec) == Some(true) {
        return None;
    }
    Some(violation(reason, format!("pod or {} must set securityContext.runAsNonRoot=true", named(&implicit))))
}

fn run_as_user(pod: &Pod<'_>) -> Option<Violation> {
    let root = |holder: &Value| holder.int_at("securityContext.runAsUser") == Some(0);
    let containers = pod.containers_where(root);
    let who = setters(root(pod.spec), &containers);
    if who.is_empty() {
        None
    } else {
        Some(violation("runAsUser=0", format!("{who} must not set runAsUser=0")))
    }
}
