//! Annotations that control the simulation. Durations are written like `30s` or `1m 30s`.
//!
//! Set pod annotations in a pod template to apply them to all its pods.

/// On a pod: time until its containers are created.
pub const START_DELAY: &str = "kubewright.dev/start-delay";
/// On a pod: time from start until its containers are ready.
pub const READY_DELAY: &str = "kubewright.dev/ready-delay";
/// On a pod: time until its containers exit. By default, containers with the restart policy `Always` run
/// forever and others run for a second.
pub const RUN_TIME: &str = "kubewright.dev/run-time";
/// On a pod: the exit code of its containers, 0 by default. Containers with an exit code always exit, even
/// without [`RUN_TIME`], so that a pod with the restart policy `Always` crash-loops.
pub const EXIT_CODE: &str = "kubewright.dev/exit-code";
/// On a pod: comma-separated images that cannot be pulled; `*` means all. Set it in the first template to
/// make the rollout of a later image fail.
pub const BAD_IMAGES: &str = "kubewright.dev/bad-images";
/// On a pod: time that its containers take to stop; at most the grace period.
pub const STOP_DELAY: &str = "kubewright.dev/stop-delay";
/// On a pod: the log lines that each container writes at start. The API server reads them for log requests;
/// lines added later appear as new output of a running container.
pub const LOGS: &str = "kubewright.dev/logs";
/// On a node: `true` powers the node off.
pub const DOWN: &str = "kubewright.dev/down";
/// On a HorizontalPodAutoscaler: metric totals by name, such as `cpu=1500m,requests=200`, which the pods of
/// the target share evenly.
pub const METRICS: &str = "kubewright.dev/metrics";
