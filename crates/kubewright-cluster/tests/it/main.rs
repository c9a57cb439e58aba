//! The controllers of a cluster on the embedded API server. The clock is paused: time advances only when all
//! tasks are idle.

mod autoscaler;
mod cronjob;
mod daemonset;
mod deployment;
mod disruption;
mod endpoints;
mod envtest;
mod eviction;
mod faults;
mod job;
mod kubectl;
mod kubelet;
mod namespace;
mod quota;
mod replicaset;
mod replicationcontroller;
mod scheduler;
mod statefulset;
mod world;
