//! The annotations that say what becomes of a pod or a node, or what is measured. Durations are written like `30s` or
//! `1m 30s`.
//!
//! On a pod template they are on every pod of it, which is how a Deployment's are chosen.

/// On a pod: how long its containers take to be created.
pub const START_DELAY: &str = "kubewright.dev/start-delay";
/// On a pod: how long its containers run before they are ready.
pub const READY_DELAY: &str = "kubewright.dev/ready-delay";
/// On a pod: how long its containers run before they end. Those that may be restarted after success never end by
/// themselves; those of others run for a second.
pub const RUN_TIME: &str = "kubewright.dev/run-time";
/// On a pod: what its containers end with; 0 otherwise. With [`RUN_TIME`] or without, they end, so that a pod that is
/// restarted always is in a crash loop.
pub const EXIT_CODE: &str = "kubewright.dev/exit-code";
/// On a pod: images, separated by commas, that cannot be pulled; `*` is all. On a template from the beginning, it stops
/// the rollout of a later image.
pub const BAD_IMAGES: &str = "kubewright.dev/bad-images";
/// On a pod: how long its containers take to end when they are asked to; at most the grace period.
pub const STOP_DELAY: &str = "kubewright.dev/stop-delay";
/// On a pod: what each of its containers writes when it starts, line by line. The API server reads it when it is asked for
/// logs; lines that are added later are what a running container writes then.
pub const LOGS: &str = "kubewright.dev/logs";
/// On a node: `true` switches the machine off.
pub const DOWN: &str = "kubewright.dev/down";
/// On a HorizontalPodAutoscaler: what is measured, as in `cpu=1500m,requests=200`: the total of each metric by its name,
/// which the pods of the target share evenly.
pub const METRICS: &str = "kubewright.dev/metrics";
