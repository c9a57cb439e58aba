//! The controllers of a cluster on the embedded server, on a clock that is paused: time passes when nothing else is to do.

mod deployment;
mod kubelet;
mod replicaset;
mod scheduler;
mod world;
