//! `pods/log`: simulates a kubelet's logs and kube-apiserver's errors.
//!
//! No containers run, so the lines come from an annotation of the pod. Their times, and whether there are
//! any, follow from the container's state in the pod's status. Of a kubelet, only the node's address is
//! simulated.

use std::sync::Arc;

use bytes::Bytes;
use http::{Response, StatusCode};
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::status::{ApiError, Qualified};
use kubewright_apimachinery::time;
use kubewright_sync::ordered_watch;
use serde_json::Value;

use super::Subresources;
use crate::encoding::body::Body;
use crate::encoding::negotiate::negotiate_without_tables;
use crate::encoding::response;
use crate::registry::resource::Resource;
use crate::request::options::parse_int;
use crate::request::{Query, Request};
use crate::server::no_resource;
use crate::storage::Store;

/// Pod annotation with the log lines that each container writes on start.
const LOGS: &str = "kubewright.dev/logs";
/// Node annotation: the machine is off.
const DOWN: &str = "kubewright.dev/down";
const KUBELET_PORT: u16 = 10250;
/// Microseconds between lines, so that each has a unique time.
const STEP: i64 = 1_000;
const MEDIA: &str = "text/plain";

impl Subresources {
    /// The logs of a container.
    pub(super) fn logs(
        &self,
        request: &Request,
        resource: &Arc<Resource>,
        namespace: &str,
        name: &str,
    ) -> Result<Response<Body>, ApiError> {
        negotiate_without_tables(request, resource, "text/plain")?;
        let options = Options::read(&request.query, name)?;
        let version = self.reads.find(resource, namespace, name)?;
        let pod = version.object();
        let container = container(&pod, &options.container)?;
        let node = pod.str_at("spec.nodeName");
        if node.is_empty() {
            // As upstream, the logs of an unscheduled pod are empty, not an error.
            return Ok(response::respond(StatusCode::NO_CONTENT, MEDIA, Body::empty()));
        }
        self.reach_kubelet(node, &format!("/containerLogs/{namespace}/{name}/{container}"))?;
        let started = started(&pod, &container, options.previous)?;
        let mut reader = Reader { started, sent: 0, left: options.limit };
        let first = reader.first(&pod, &options, self.reads.clock.now_micros());
        let over = !options.follow || options.previous || !runs_since(&pod, &container, started);
        if over || reader.left == Some(0) {
            return Ok(response::respond(StatusCode::OK, MEDIA, first));
        }
        let follower = Follower {
            changes: self.reads.store.changes(),
            store: self.reads.store.clone(),
            resource: resource.clone(),
            key: resource.key(namespace, name),
            container,
            timestamps: options.timestamps,
            reader,
            ready: Some(first.into()),
            over: false,
        };
        let stream = futures_util::stream::unfold(follower, |mut follower| async move {
            let piece = follower.next().await?;
            Some((piece, follower))
        });
        Ok(response::respond(StatusCode::OK, MEDIA, Body::stream(stream)))
    }

    /// Fails if a real server could not reach the kubelet.
    fn reach_kubelet(&self, node: &str, path: &str) -> Result<(), ApiError> {
        let registry = self.writes.objects.registry();
        let nodes = registry.find("", "v1", "nodes").ok_or_else(no_resource)?;
        let node = self.reads.find(nodes, "", node)?.object();
        let failed = |message: String| Err(ApiError::new(500, "", message));
        let addresses = node.list_at("status.addresses");
        let Some(host) = addresses.first().map(|address| address.str_at("address")) else {
            return failed("no preferred addresses found; known addresses: []".to_owned());
        };
        if node.at("metadata.annotations")[DOWN] == "true" {
            let at = format!("{host}:{KUBELET_PORT}");
            return failed(format!("Get \"https://{at}{path}\": dial tcp {at}: connect: no route to host"));
        }
        Ok(())
    }
}

/// PodLogOptions.
#[derive(Debug)]
struct Options {
    container: String,
    follow: bool,
    previous: bool,
    timestamps: bool,
    tail: Option<usize>,
    /// Maximum number of bytes.
    limit: Option<usize>,
    since: Since,
}

#[derive(Debug, Clone, Copy)]
enum Since {
    Beginning,
    /// Microseconds since the Unix epoch.
    Time(i64),
    SecondsAgo(i64),
}

impl Options {
    fn read(query: &Query, pod: &str) -> Result<Self, ApiError> {
        let text = |name| query.get(name).filter(|text| !text.is_empty());
        let number = |name| text(name).map(parse_int).transpose();
        let (tail, limit, seconds) = (number("tailLines")?, number("limitBytes")?, number("sinceSeconds")?);
        let time = text("sinceTime").map(parse_time).transpose()?;
        let mut errors = ErrorList::new();
        let mut check = |name: &str, value: Option<i64>, least: i64, why: &str| {
            if let Some(value) = value.filter(|value| *value < least) {
                errors.push(FieldError::invalid(&Path::new(name), value, why));
            }
        };
        check("tailLines", tail, 0, "must be greater than or equal to 0");
        check("limitBytes", limit, 1, "must be greater than 0");
        if time.is_none() {
            check("sinceSeconds", seconds, 1, "must be greater than 0");
        }
        let since = match (seconds, time) {
            (Some(_), Some(_)) => {
                let why = "at most one of `sinceTime` or `sinceSeconds` may be specified";
                errors.push(FieldError::forbidden(&Path::new(""), why));
                Since::Beginning
            }
            (Some(seconds), None) => Since::SecondsAgo(seconds),
            (None, Some(time)) => Since::Time(time),
            (None, None) => Since::Beginning,
        };
        if !errors.is_empty() {
            return Err(ApiError::invalid(Qualified { group: "", name: "PodLogOptions" }, pod, &errors));
        }
        let size = |number: Option<i64>| number.map(|number| usize::try_from(number).unwrap_or(usize::MAX));
        Ok(Self {
            container: query.get("container").unwrap_or_default().to_owned(),
            follow: query.flag("follow"),
            previous: query.flag("previous"),
            timestamps: query.flag("timestamps"),
            tail: size(tail),
            limit: size(limit),
            since,
        })
    }
}

fn parse_time(text: &str) -> Result<i64, ApiError> {
    time::parse_rfc3339_micros(text)
        .ok_or_else(|| ApiError::bad_request(format!("sinceTime: {text:?} is not a time in RFC 3339")))
}

/// The requested container, or the only one.
pub(super) fn container(pod: &Value, asked: &str) -> Result<String, ApiError> {
    let names = |field: &str| -> Vec<&str> {
        pod.list_at(field).iter().map(|container| container.str_at("name")).collect()
    };
    let (main, init) = (names("spec.containers"), names("spec.initContainers"));
    let pod_name = pod.str_at("metadata.name");
    if asked.is_empty() {
        if let [only] = main[..] {
            return Ok(only.to_owned());
        }
        let mut message = format!(
            "a container name must be specified for pod {pod_name}, choose one of: [{}]",
            main.join(" ")
        );
        if !init.is_empty() {
            message = format!("{message} or one of the init containers: [{}]", init.join(" "));
        }
        return Err(ApiError::bad_request(message));
    }
    let mut known = main.into_iter().chain(init).chain(names("spec.ephemeralContainers"));
    if known.any(|name| name == asked) {
        return Ok(asked.to_owned());
    }
    Err(ApiError::bad_request(format!("container {asked} is not valid for pod {pod_name}")))
}

fn status<'a>(pod: &'a Value, container: &str) -> Option<&'a Value> {
    ["status.containerStatuses", "status.initContainerStatuses", "status.ephemeralContainerStatuses"]
        .into_iter()
        .flat_map(|field| pod.list_at(field))
        .find(|status| status.str_at("name") == container)
}

fn time_at(value: &Value, path: &str) -> i64 {
    time::parse_rfc3339_micros(value.str_at(path)).unwrap_or_default()
}

/// The start time of the requested run of a container, or a kubelet's error if there is none.
fn started(pod: &Value, container: &str, previous: bool) -> Result<i64, ApiError> {
    let which = format!("container {container:?} in pod {:?}", pod.str_at("metadata.name"));
    let refuse = |message: String| Err(ApiError::bad_request(message));
    let Some(status) = status(pod, container) else {
        return refuse(format!("{which} is not available"));
    };
    let last = status.has("lastState.terminated").then(|| time_at(status, "lastState.terminated.startedAt"));
    if previous {
        return last.map_or_else(|| refuse(format!("previous terminated {which} not found")), Ok);
    }
    for state in ["state.running", "state.terminated"] {
        if status.has(state) {
            return Ok(time_at(status.at(state), "startedAt"));
        }
    }
    match (last, status.str_at("state.waiting.reason")) {
        (Some(last), _) => Ok(last),
        (None, "") => refuse(format!("{which} is waiting to start - no logs yet")),
        (None, "ErrImagePull") => refuse(format!("{which} is waiting to start: image can't be pulled")),
        (None, "ImagePullBackOff") => {
            refuse(format!("{which} is waiting to start: trying and failing to pull image"))
        }
        (None, reason) => refuse(format!("{which} is waiting to start: {reason}")),
    }
}

/// Whether the run that started at this time is still the current one.
fn runs_since(pod: &Value, container: &str, started: i64) -> bool {
    status(pod, container).is_some_and(|status| {
        status.has("state.running") && time_at(status, "state.running.startedAt") == started
    })
}

fn lines(pod: &Value) -> Vec<&str> {
    pod.at("metadata.annotations")[LOGS].as_str().unwrap_or_default().lines().collect()
}

/// The position of a reader in the lines of one run.
#[derive(Debug)]
struct Reader {
    started: i64,
    /// Number of lines that were sent or skipped.
    sent: usize,
    /// Number of bytes that may still be sent.
    left: Option<usize>,
}

impl Reader {
    fn first(&mut self, pod: &Value, options: &Options, now: i64) -> Vec<u8> {
        let lines = lines(pod);
        let since = match options.since {
            Since::Beginning => i64::MIN,
            Since::Time(time) => time,
            Since::SecondsAgo(seconds) => now.saturating_sub(seconds.saturating_mul(1_000_000)),
        };
        let early = (0..lines.len()).take_while(|line| self.time(*line) < since).count();
        let tail = options.tail.map_or(0, |tail| lines.len().saturating_sub(tail));
        self.sent = early.max(tail);
        self.rest(&lines, options.timestamps)
    }

    /// The lines that were not sent yet.
    fn rest(&mut self, lines: &[&str], timestamps: bool) -> Vec<u8> {
        let mut text = String::new();
        for (number, line) in lines.iter().enumerate().skip(self.sent) {
            if timestamps {
                // Nanoseconds, as in kubelet logs.
                let time = time::format_rfc3339_micro(self.time(number));
                text.push_str(time.trim_end_matches('Z'));
                text.push_str("000Z ");
            }
            text.push_str(line);
            text.push('\n');
        }
        self.sent = self.sent.max(lines.len());
        let mut bytes = text.into_bytes();
        if let Some(left) = &mut self.left {
            bytes.truncate(*left);
            *left -= bytes.len();
        }
        bytes
    }

    fn time(&self, line: usize) -> i64 {
        let after = i64::try_from(line).unwrap_or(i64::MAX).saturating_mul(STEP);
        self.started.saturating_add(after)
    }
}

/// Follows the log: returns lines that are added to the annotation until the container terminates.
struct Follower {
    changes: ordered_watch::Receiver<u64>,
    store: Arc<Store>,
    resource: Arc<Resource>,
    key: String,
    container: String,
    timestamps: bool,
    reader: Reader,
    ready: Option<Bytes>,
    over: bool,
}

impl Follower {
    /// The next chunk; `None` after the container has terminated.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(piece) = self.ready.take().filter(|piece| !piece.is_empty()) {
                return Some(piece);
            }
            if self.over || self.reader.left == Some(0) {
                return None;
            }
            self.changes.borrow_and_update();
            let version = self.store.get(&self.resource.storage, &self.key)?;
            let pod = version.object();
            self.over = !runs_since(&pod, &self.container, self.reader.started);
            let more = self.reader.rest(&lines(&pod), self.timestamps);
            if more.is_empty() && !self.over && self.changes.changed().await.is_err() {
                return None;
            }
            self.ready = Some(more.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(status: &Value) -> Value {
        json!({
            "metadata": { "name": "p", "annotations": { LOGS: "one\ntwo\nthree\n" } },
            "spec": {
                "containers": [{ "name": "a" }, { "name": "b" }], "initContainers": [{ "name": "i" }],
            },
            "status": { "containerStatuses": [status] },
        })
    }

    fn refused<T: std::fmt::Debug>(result: Result<T, ApiError>) -> String {
        let error = result.expect_err("the request is rejected");
        assert_eq!(error.code, 400);
        error.message
    }

    fn read(query: &str) -> String {
        let options = Options::read(&Query::parse(query), "p").expect("the options are valid");
        let mut reader = Reader { started: 10_000_000, sent: 0, left: options.limit };
        let text = reader.first(&pod(&Value::Null), &options, 20_000_000);
        String::from_utf8(text).expect("lines are text")
    }

    #[test]
    fn a_pod_with_several_containers_needs_a_valid_container_name() {
        let pod = pod(&Value::Null);
        assert_eq!(container(&pod, "i").ok().as_deref(), Some("i"));
        assert_eq!(refused(container(&pod, "x")), "container x is not valid for pod p");
        assert_eq!(
            refused(container(&pod, "")),
            "a container name must be specified for pod p, choose one of: [a b] or one of the init containers: [i]"
        );
    }

    #[test]
    fn a_container_that_has_not_started_returns_the_kubelets_error() {
        let waiting =
            |reason: &str| pod(&json!({ "name": "a", "state": { "waiting": { "reason": reason } } }));
        for (reason, why) in [
            ("ContainerCreating", "container \"a\" in pod \"p\" is waiting to start: ContainerCreating"),
            ("ErrImagePull", "container \"a\" in pod \"p\" is waiting to start: image can't be pulled"),
            (
                "ImagePullBackOff",
                "container \"a\" in pod \"p\" is waiting to start: trying and failing to pull image",
            ),
        ] {
            assert_eq!(refused(started(&waiting(reason), "a", false)), why);
        }
        assert_eq!(
            refused(started(&waiting("x"), "b", false)),
            "container \"b\" in pod \"p\" is not available"
        );
        assert_eq!(
            refused(started(&waiting("x"), "a", true)),
            "previous terminated container \"a\" in pod \"p\" not found"
        );
    }

    #[test]
    fn a_crash_loop_returns_the_last_run_and_previous_the_one_before() {
        let at = |seconds: i64| time::format_rfc3339(seconds);
        let last = json!({ "terminated": { "startedAt": at(5) } });
        let crashing = pod(
            &json!({ "name": "a", "lastState": last, "state": { "waiting": { "reason": "CrashLoopBackOff" } } }),
        );
        assert_eq!(started(&crashing, "a", false).ok(), Some(5_000_000));
        let again =
            pod(&json!({ "name": "a", "lastState": last, "state": { "running": { "startedAt": at(9) } } }));
        assert_eq!(started(&again, "a", false).ok(), Some(9_000_000));
        assert_eq!(started(&again, "a", true).ok(), Some(5_000_000));
        assert!(runs_since(&again, "a", 9_000_000) && !runs_since(&crashing, "a", 5_000_000));
    }

    #[test]
    fn lines_are_selected_by_number_size_and_time() {
        assert_eq!(read(""), "one\ntwo\nthree\n");
        assert_eq!(read("tailLines=1"), "three\n");
        assert_eq!(read("tailLines=0"), "");
        assert_eq!(read("tailLines=9&limitBytes=5"), "one\nt");
        assert_eq!(read("sinceSeconds=10"), "one\ntwo\nthree\n");
        assert_eq!(read("sinceSeconds=9"), "");
        assert_eq!(read("sinceTime=1970-01-01T00:00:10.0015Z"), "three\n");
        assert_eq!(
            read("timestamps=true&tailLines=2"),
            "1970-01-01T00:00:10.001000000Z two\n1970-01-01T00:00:10.002000000Z three\n"
        );
    }

    #[test]
    fn invalid_options_are_rejected_with_upstreams_errors() {
        let refusal = |query: &str| {
            Options::read(&Query::parse(query), "p").expect_err("the options are invalid").message
        };
        assert_eq!(
            refusal("tailLines=-1&limitBytes=0"),
            "PodLogOptions \"p\" is invalid: [tailLines: Invalid value: -1: must be greater than or equal to 0, \
             limitBytes: Invalid value: 0: must be greater than 0]"
        );
        assert_eq!(
            refusal("sinceSeconds=0"),
            "PodLogOptions \"p\" is invalid: sinceSeconds: Invalid value: 0: must be greater than 0"
        );
        assert_eq!(refusal("tailLines=x"), "strconv.ParseInt: parsing \"x\": invalid syntax");
        assert!(refusal("sinceSeconds=1&sinceTime=1970-01-01T00:00:10Z").contains("at most one of"));
    }
}
