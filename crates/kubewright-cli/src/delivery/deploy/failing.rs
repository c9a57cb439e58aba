//! Recognizes Pods that will not become ready.

use k8s_openapi::api::core::v1::{ContainerStatus, Pod};

/// Restarts after which a container that exits is considered broken.
const RESTARTS: i32 = 2;

/// Why a container does not run.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Problem {
    pub(super) container: String,
    pub(super) reason: String,
    pub(super) message: String,
    /// Whether waiting longer is unlikely to help.
    pub(super) is_final: bool,
    /// Whether the log of the previous run explains more than that of the current one.
    pub(super) has_restarted: bool,
}

/// The problems of a Pod's containers.
pub(super) fn problems(pod: &Pod) -> Vec<Problem> {
    let status = pod.status.as_ref();
    let init = status.and_then(|status| status.init_container_statuses.as_deref()).unwrap_or_default();
    let main = status.and_then(|status| status.container_statuses.as_deref()).unwrap_or_default();
    init.iter().chain(main).filter_map(problem).collect()
}

fn problem(status: &ContainerStatus) -> Option<Problem> {
    let state = status.state.as_ref()?;
    let has_restarted = status.restart_count > 0;
    let made = |reason: &str, message: String, is_final| {
        let (container, reason) = (status.name.clone(), reason.to_owned());
        Some(Problem { container, reason, message, is_final, has_restarted })
    };
    if let Some(waiting) = &state.waiting {
        let reason = waiting.reason.as_deref().unwrap_or_default();
        // Normal before the first start.
        if matches!(reason, "" | "ContainerCreating" | "PodInitializing") {
            return None;
        }
        let is_final = match reason {
            "ImagePullBackOff" | "InvalidImageName" | "ErrImageNeverPull" | "CreateContainerConfigError" => {
                true
            }
            "CrashLoopBackOff" => status.restart_count >= RESTARTS,
            _ => false,
        };
        let mut message = waiting.message.clone().unwrap_or_default();
        let last = status.last_state.as_ref().and_then(|last| last.terminated.as_ref());
        if let Some(last) = last {
            message = format!("{message} (last exit code {})", last.exit_code);
        }
        return made(reason, message, is_final);
    }
    let terminated = state.terminated.as_ref().filter(|terminated| terminated.exit_code != 0)?;
    let reason = terminated.reason.as_deref().unwrap_or("Error");
    let message = terminated.message.clone().unwrap_or_else(|| format!("exit code {}", terminated.exit_code));
    made(reason, message, false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn pod(status: &Value) -> Pod {
        serde_json::from_value(json!({"metadata": {}, "status": {"containerStatuses": [status]}})).unwrap()
    }

    fn status(restarts: i32, state: &Value) -> Value {
        json!({"name": "manager", "image": "", "imageID": "", "ready": false, "restartCount": restarts, "state": state})
    }

    #[test]
    fn a_starting_container_has_no_problem() {
        let waiting = status(0, &json!({"waiting": {"reason": "ContainerCreating"}}));
        assert_eq!(problems(&pod(&waiting)), []);
        assert_eq!(problems(&pod(&status(0, &json!({"running": {}})))), []);
    }

    #[test]
    fn a_missing_image_is_final() {
        let state = json!({"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image"}});
        let found = problems(&pod(&status(0, &state)));
        assert!(found[0].is_final && found[0].message == "Back-off pulling image", "{found:?}");
        let first = json!({"waiting": {"reason": "ErrImagePull"}});
        assert!(!problems(&pod(&status(0, &first)))[0].is_final);
    }

    #[test]
    fn a_crash_is_final_after_restarts() {
        let state = json!({"waiting": {"reason": "CrashLoopBackOff"}});
        assert!(!problems(&pod(&status(1, &state)))[0].is_final);
        let found = problems(&pod(&status(2, &state)));
        assert!(found[0].is_final && found[0].has_restarted);
        let exited = json!({"terminated": {"exitCode": 3}});
        assert_eq!(problems(&pod(&status(0, &exited)))[0].message, "exit code 3");
    }
}
