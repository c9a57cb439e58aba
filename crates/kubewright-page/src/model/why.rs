//! Why a reconcile ran: the chain of writes and reconciles back to the first cause.
//!
//! Pure. A cause of the journal leads to the write of the object, by resource version. A write of the operator leads to
//! the reconcile that sent the request, also by resource version. Other controllers have no journal: their writes are
//! followed to the last related write before them, and marked as likely.

use serde::Serialize;

use super::history::{History, Verb, Write, segments};
use super::records::{Call, Cause};
use super::work::{Reconcile, Work};

/// Maximum number of steps of a chain.
const STEPS: usize = 40;
/// The page may observe a write this much later than the operator, in milliseconds.
const LAG: u64 = 1_000;

/// The chains of a reconcile, one per cause, each from the cause back to the first cause.
#[derive(Debug, Serialize)]
pub struct Why {
    id: String,
    chains: Vec<Vec<Step>>,
}

/// One link in the chain of causes, from the reconcile backwards.
#[derive(Debug, Serialize)]
#[serde(tag = "step", rename_all = "lowercase")]
pub enum Step {
    /// A write of an object.
    Write {
        #[serde(flatten)]
        write: Write,
        by: Role,
        /// Whether the write is known to be the cause, not only likely.
        certain: bool,
    },
    /// The reconcile that sent the write, or that requested this one.
    Reconcile { id: String, controller: String, kind: String, namespace: String, name: String, at: String },
    /// The chain ends here without a write.
    End { text: &'static str },
}

/// What kind of client a field manager is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    Operator,
    User,
    Controller,
    Unknown,
}

/// Field managers of controllers in a cluster. Others are users and their tools.
const CONTROLLERS: &[&str] = &["controller", "kube-", "kubelet", "scheduler", "operator"];
/// Field managers of users.
const USERS: &[&str] = &["kubectl", "kubewright-dev", "helm", "k9s", "argocd", "flux", "kustomize"];

/// Explains a reconcile; `None` if it is unknown.
pub fn why(id: &str, work: &Work, history: &History) -> Option<Why> {
    let reconcile = work.reconcile(id)?;
    let search = Search { work, history };
    let chains = reconcile.causes.iter().map(|cause| search.chain(reconcile, cause)).collect();
    Some(Why { id: id.to_owned(), chains })
}

struct Search<'a> {
    work: &'a Work,
    history: &'a History,
}

/// Where a step leads.
enum Next<'a> {
    Caused(&'a Reconcile, &'a Cause),
    Written(&'a Write, bool),
    Nothing,
}

impl<'a> Search<'a> {
    fn chain(&self, reconcile: &'a Reconcile, cause: &'a Cause) -> Vec<Step> {
        let mut steps = Vec::new();
        let mut next = Next::Caused(reconcile, cause);
        while steps.len() < STEPS {
            next = match next {
                Next::Nothing => break,
                Next::Caused(reconcile, cause) => self.cause(reconcile, cause, &mut steps),
                Next::Written(write, certain) => self.write(write, certain, &mut steps),
            };
        }
        steps
    }

    /// From a cause to the write, or to the reconcile that requested it.
    fn cause(&self, reconcile: &'a Reconcile, cause: &'a Cause, steps: &mut Vec<Step>) -> Next<'a> {
        let end = |steps: &mut Vec<Step>, text| {
            steps.push(Step::End { text });
            Next::Nothing
        };
        match cause.why.as_str() {
            "initial" => end(steps, "The operator started and listed existing objects."),
            "resync" => end(steps, "All objects are reconciled again after the resync period."),
            "channel" => end(steps, "The operator requested it through a channel."),
            "retried" | "requeued" => match self.work.before(reconcile) {
                Some(before) => self.caused_by(before, steps),
                None => end(steps, "The previous reconcile is not in the history."),
            },
            _ => match self.written(reconcile, cause) {
                Some(write) => Next::Written(write, true),
                None => end(steps, "The write was not observed."),
            },
        }
    }

    #[expect(clippy::unused_self, reason = "same signature as the other steps of the chain")]
    fn caused_by(&self, reconcile: &'a Reconcile, steps: &mut Vec<Step>) -> Next<'a> {
        let is_known =
            steps.iter().any(|step| matches!(step, Step::Reconcile { id, .. } if *id == reconcile.id));
        if is_known {
            return Next::Nothing;
        }
        steps.push(Step::Reconcile {
            id: reconcile.id.clone(),
            controller: reconcile.controller.clone(),
            kind: reconcile.kind.clone(),
            namespace: reconcile.namespace.clone(),
            name: reconcile.name.clone(),
            at: reconcile.at.clone(),
        });
        reconcile.causes.first().map_or(Next::Nothing, |cause| Next::Caused(reconcile, cause))
    }

    /// The write that a cause reports: up to its resource version, preferably of the changed fields.
    fn written(&self, reconcile: &Reconcile, cause: &Cause) -> Option<&'a Write> {
        let version: Option<u64> = cause.resource_version.as_ref().and_then(|version| version.parse().ok());
        let verb = match cause.why.as_str() {
            "created" => Verb::Created,
            "deleted" => Verb::Deleted,
            _ => Verb::Modified,
        };
        let is_before = |write: &Write| match version {
            Some(version) => write.version <= version,
            None => write.at <= reconcile.millis + LAG,
        };
        let of_object = || {
            self.history.newest().filter(|write| {
                (write.kind.as_str(), write.namespace.as_str(), write.name.as_str())
                    == (cause.kind.as_str(), cause.namespace.as_str(), cause.name.as_str())
                    && write.verb == verb
                    && is_before(write)
            })
        };
        of_object().find(|write| overlap(&write.changed, &cause.changed)).or_else(|| of_object().next())
    }

    /// From a write to the reconcile that sent it, or to the likely cause of another controller's write.
    fn write(&self, write: &'a Write, certain: bool, steps: &mut Vec<Step>) -> Next<'a> {
        let is_known = steps
            .iter()
            .any(|step| matches!(step, Step::Write { write: known, .. } if known.number == write.number));
        if is_known {
            return Next::Nothing;
        }
        let sender = self.sender(write);
        let by = if sender.is_some() { Role::Operator } else { self.role(&write.manager) };
        steps.push(Step::Write { write: write.clone(), by, certain });
        if let Some(reconcile) = sender {
            return self.caused_by(reconcile, steps);
        }
        if by != Role::Controller {
            return Next::Nothing;
        }
        let mut last = self.related(write);
        // Earlier writes of the same controller to the same object explain nothing.
        while let Some(before) = last
            && before.verb == Verb::Modified
            && (&before.object, &before.manager) == (&write.object, &write.manager)
        {
            last = self.related(before);
        }
        last.map_or(Next::Nothing, |before| Next::Written(before, false))
    }

    /// The last write that a controller probably reacted to: to the spec of an owner, or the status of what it owns.
    fn related(&self, write: &Write) -> Option<&'a Write> {
        let is_related = |before: &&Write| {
            let same = before.object == write.object;
            let of_owner = write.owners.contains(&before.object) && !is_status(before);
            let of_child = before.owners.contains(&write.object);
            is_before(before, write)
                && match write.verb {
                    Verb::Created => of_owner,
                    Verb::Modified if is_status(write) => same || of_child,
                    Verb::Modified | Verb::Deleted => same || of_owner,
                }
        };
        self.history.newest().filter(is_related).max_by_key(|before| (before.version, before.number))
    }

    /// The reconcile whose request has the resource version of the write. A later request that changes nothing gets the
    /// same version, so the first one counts.
    fn sender(&self, write: &Write) -> Option<&'a Reconcile> {
        let is_listed = write.version == 0 && write.verb == Verb::Created;
        if write.version == 0 && !is_listed {
            return None;
        }
        let is_own = write.manager.is_empty() || self.work.is_operator(&write.manager);
        let (version, named) = (write.version.to_string(), format!("fieldManager={}", write.manager));
        let is_it = |call: &Call| {
            let ok = call.status.is_some_and(|status| (200..300).contains(&status));
            // A request that changed nothing gets the version of another client's write.
            let is_by = is_own || call.path.contains(&named);
            if !ok || !is_by || call.method == "GET" || !is_path_of(&call.path, write) {
                return false;
            }
            // A listed object was created by the request that got 201.
            if is_listed {
                call.status == Some(201)
            } else {
                call.resource_version.as_ref() == Some(&version)
            }
        };
        self.work.oldest().find(|reconcile| reconcile.calls.iter().any(is_it))
    }

    fn role(&self, manager: &str) -> Role {
        let has = |names: &[&str]| names.iter().any(|name| manager.contains(name));
        if self.work.is_operator(manager) {
            Role::Operator
        } else if manager.is_empty() || manager == "unknown" {
            // A client without a user agent.
            Role::Unknown
        } else if !has(USERS) && has(CONTROLLERS) {
            Role::Controller
        } else {
            Role::User
        }
    }
}

/// Whether a write changed nothing but the status.
fn is_status(write: &Write) -> bool {
    let is_field = |field: &String| segments(field).next() == Some("status");
    write.subresource == "status" || (!write.changed.is_empty() && write.changed.iter().all(is_field))
}

/// Whether a write came before another one. Kinds are watched separately, so the page may observe them in another
/// order. Listed objects have no version.
fn is_before(before: &Write, write: &Write) -> bool {
    if before.version > 0 && write.version > 0 {
        before.version < write.version
    } else {
        before.number < write.number
    }
}

/// Whether a request path can be that of the object. A create has no name in its path.
fn is_path_of(path: &str, write: &Write) -> bool {
    let path = path.split('?').next().unwrap_or_default();
    let mut parts = path.split('/');
    let in_namespace = write.namespace.is_empty() || {
        let mut parts = path.split('/');
        parts.any(|part| part == "namespaces") && parts.next() == Some(write.namespace.as_str())
    };
    in_namespace && (parts.any(|part| part == write.name) || write.verb == Verb::Created)
}

/// Whether two lists of paths have a field in common. Paths can differ in depth.
fn overlap(a: &[String], b: &[String]) -> bool {
    let same = |a: &str, b: &str| segments(a).zip(segments(b)).take(2).all(|(a, b)| a == b);
    a.iter().any(|a| b.iter().any(|b| same(a, b)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::board::Board;
    use serde_json::{Value, json};

    struct Story {
        work: Work,
        board: Board,
        history: History,
    }

    impl Story {
        fn new() -> Self {
            let mut story =
                Self { work: Work::default(), board: Board::default(), history: History::default() };
            story.record(
                &json!({ "type": "hello", "at": "", "operator": "view-operator", "controllers": ["view"] }),
            );
            story
        }

        fn record(&mut self, line: &Value) {
            let record = serde_json::from_value(line.clone()).expect("a record");
            self.work.record(1, record, &mut self.board);
        }

        fn started(&mut self, id: &str, at: &str, cause: &Value) {
            self.record(&json!({
                "type": "started", "at": at, "id": id, "controller": "view", "kind": "View", "namespace": "default",
                "name": "sample", "causes": [cause],
            }));
        }

        fn write(&mut self, old: Option<&Value>, new: &Value) {
            self.history.wrote(old, new, 1_767_225_600_000);
        }

        fn steps(&self, id: &str) -> Vec<String> {
            let why = why(&format!("1:{id}"), &self.work, &self.history).expect("a reconcile");
            why.chains[0].iter().map(shown).collect()
        }
    }

    fn shown(step: &Step) -> String {
        match step {
            Step::Write { write, by, certain } => {
                let likely = if *certain { "" } else { " (likely)" };
                let changed = write.changed.join(",");
                format!(
                    "{by:?} {} {:?} {} {} {changed}{likely}",
                    write.manager, write.verb, write.kind, write.name
                )
                .replace("  ", " ")
                .trim_end()
                .to_owned()
            }
            Step::Reconcile { id, .. } => format!("reconcile {id}"),
            Step::End { text } => (*text).to_owned(),
        }
    }

    fn object(kind: &str, name: &str, version: u64, manager: &str, owner: &str, field: (&str, u64)) -> Value {
        let (field, value) = field;
        let (section, field) = field.split_once('.').expect("a path");
        let fields = json!({ format!("f:{section}"): { format!("f:{field}"): {} } });
        json!({
            "kind": kind,
            "metadata": {
                "uid": format!("{kind}-{name}"), "name": name, "namespace": "default",
                "resourceVersion": version.to_string(),
                "ownerReferences": if owner.is_empty() { json!([]) } else { json!([{ "uid": owner }]) },
                "managedFields": [{ "manager": manager, "operation": "Update", "time": format!("{version}"), "fieldsV1": fields }],
            },
            section: { field: value },
        })
    }

    fn cause(why: &str, kind: &str, name: &str, changed: &[&str], version: u64) -> Value {
        json!({ "why": why, "kind": kind, "namespace": "default", "name": name, "changed": changed, "resource_version": version.to_string() })
    }

    const AT: &str = "2026-01-01T00:00:00.000000Z";

    #[test]
    fn the_chain_goes_back_to_the_write_of_the_user() {
        let mut story = Story::new();
        story.write(None, &object("View", "sample", 1, "kubectl-create", "", ("spec.replicas", 2)));
        story.started("one", AT, &cause("created", "View", "sample", &[], 1));
        story.record(&json!({
            "type": "request", "at": AT, "id": "one", "method": "PATCH", "status": 201, "ms": 1.0, "resource_version": "2",
            "path": "/apis/apps/v1/namespaces/default/deployments/web?fieldManager=view-operator",
        }));
        let made = object("Deployment", "web", 2, "view-operator", "View-sample", ("spec.replicas", 2));
        story.write(None, &made);
        let mut ready = object(
            "Deployment",
            "web",
            4,
            "kube-controller-manager",
            "View-sample",
            ("status.readyReplicas", 1),
        );
        ready["spec"] = made["spec"].clone();
        let pod = object(
            "ReplicaSet",
            "web-1",
            3,
            "kube-controller-manager",
            "Deployment-web",
            ("spec.replicas", 2),
        );
        story.write(None, &pod);
        story.write(Some(&made), &ready);
        story.started("two", AT, &cause("modified", "Deployment", "web", &["status.readyReplicas"], 4));
        assert_eq!(
            story.steps("two"),
            [
                "Controller kube-controller-manager Modified Deployment web status",
                "Controller kube-controller-manager Created ReplicaSet web-1 (likely)",
                "Operator view-operator Created Deployment web (likely)",
                "reconcile 1:one",
                "User kubectl-create Created View sample",
            ]
        );
    }

    #[test]
    fn an_own_write_leads_to_the_reconcile_that_sent_it() {
        let mut story = Story::new();
        let first = object("View", "sample", 1, "kubectl", "", ("status.ready", 0));
        let second = object("View", "sample", 5, "view-operator", "", ("status.ready", 1));
        story.write(None, &first);
        story.started("one", AT, &cause("initial", "View", "sample", &[], 1));
        story.record(&json!({
            "type": "request", "at": AT, "id": "one", "method": "PATCH", "status": 200, "ms": 1.0, "resource_version": "5",
            "path": "/apis/example.com/v1/namespaces/default/views/sample/status",
        }));
        story.write(Some(&first), &second);
        // A later write does not count.
        story.write(Some(&second), &object("View", "sample", 6, "kubectl", "", ("status.ready", 2)));
        story.started("two", AT, &cause("modified", "View", "sample", &["status.ready"], 5));
        assert_eq!(
            story.steps("two"),
            [
                "Operator view-operator Modified View sample status.ready",
                "reconcile 1:one",
                "The operator started and listed existing objects.",
            ]
        );
    }

    #[test]
    fn a_request_that_changed_nothing_is_not_the_cause() {
        let mut story = Story::new();
        let first = object("View", "sample", 1, "kubectl", "", ("spec.replicas", 1));
        let second = object("View", "sample", 5, "view-operator", "", ("spec.replicas", 2));
        let third = object("View", "sample", 6, "kubectl", "", ("spec.replicas", 3));
        let patch = |id: &str, version: &str| {
            json!({
                "type": "request", "at": AT, "id": id, "method": "PATCH", "status": 200, "ms": 1.0,
                "resource_version": version, "path": "/apis/example.com/v1/namespaces/default/views/sample",
            })
        };
        story.write(None, &first);
        story.started("one", AT, &cause("initial", "View", "sample", &[], 1));
        story.record(&patch("one", "5"));
        story.write(Some(&first), &second);
        story.started("two", AT, &cause("modified", "View", "sample", &["spec.replicas"], 5));
        story.record(&patch("two", "5"));
        assert_eq!(story.steps("two")[1], "reconcile 1:one");
        story.write(Some(&second), &third);
        story.started("three", AT, &cause("modified", "View", "sample", &["spec.replicas"], 6));
        story.record(&patch("three", "6"));
        assert_eq!(story.steps("three"), ["User kubectl Modified View sample spec.replicas"]);
    }

    #[test]
    fn a_change_of_a_spec_leads_to_the_owner_and_not_to_earlier_statuses() {
        let mut story = Story::new();
        let manager = "kube-controller-manager";
        let view = object("View", "sample", 1, "kubectl-create", "", ("spec.replicas", 1));
        let web = object("Deployment", "web", 2, "view-operator", "View-sample", ("spec.replicas", 1));
        let set = object("ReplicaSet", "web-1", 3, manager, "Deployment-web", ("spec.replicas", 1));
        let pod = object("Pod", "web-1-a", 4, manager, "ReplicaSet-web-1", ("spec.priority", 0));
        let mut runs = object("Pod", "web-1-a", 5, manager, "ReplicaSet-web-1", ("status.ready", 1));
        runs["spec"] = pod["spec"].clone();
        for (old, new) in [(None, &view), (None, &web), (None, &set), (None, &pod), (Some(&pod), &runs)] {
            story.write(old, new);
        }
        let wider = object("View", "sample", 6, "kubectl-patch", "", ("spec.replicas", 2));
        story.write(Some(&view), &wider);
        story.started("two", AT, &cause("modified", "View", "sample", &["spec.replicas"], 6));
        story.record(&json!({
            "type": "request", "at": AT, "id": "two", "method": "PATCH", "status": 200, "ms": 1.0, "resource_version": "7",
            "path": "/apis/apps/v1/namespaces/default/deployments/web?fieldManager=view-operator",
        }));
        let larger = object("Deployment", "web", 7, "view-operator", "View-sample", ("spec.replicas", 2));
        let scaled = object("ReplicaSet", "web-1", 8, manager, "Deployment-web", ("spec.replicas", 2));
        let mut ready = object("Deployment", "web", 9, manager, "View-sample", ("status.replicas", 2));
        ready["spec"] = larger["spec"].clone();
        // The watches of two kinds deliver in another order than the writes.
        story.write(Some(&set), &scaled);
        story.write(Some(&web), &larger);
        story.write(Some(&larger), &ready);
        story.started("three", AT, &cause("modified", "Deployment", "web", &["status.replicas"], 9));
        assert_eq!(
            story.steps("three"),
            [
                "Controller kube-controller-manager Modified Deployment web status",
                "Controller kube-controller-manager Modified ReplicaSet web-1 spec.replicas (likely)",
                "Operator view-operator Modified Deployment web spec.replicas (likely)",
                "reconcile 1:two",
                "User kubectl-patch Modified View sample spec.replicas",
            ]
        );
    }

    #[test]
    fn a_retry_leads_to_the_failed_reconcile() {
        let mut story = Story::new();
        story.write(None, &object("View", "sample", 1, "kubectl", "", ("spec.replicas", 1)));
        story.started("one", AT, &cause("created", "View", "sample", &[], 1));
        story.record(
            &json!({ "type": "ended", "at": AT, "id": "one", "ms": 1.0, "outcome": "error", "error": "no" }),
        );
        story.started("two", AT, &json!({ "why": "retried" }));
        assert_eq!(story.steps("two"), ["reconcile 1:one", "User kubectl Created View sample"]);
    }

    #[test]
    fn an_unobserved_write_ends_the_chain() {
        let mut story = Story::new();
        story.started("one", AT, &cause("modified", "View", "gone", &["spec"], 9));
        assert_eq!(story.steps("one"), ["The write was not observed."]);
        assert!(why("1:none", &story.work, &story.history).is_none());
    }
}
