//! The controllers of a cluster on the embedded server, on a clock that is paused: time passes when nothing else is to do.

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
