//! The runtime against the embedded API server.

mod apply_configurations;
mod cache;
mod client;
mod condition;
mod connect;
mod connect_relay;
mod controller;
mod controller_outcomes;
mod controller_own_writes;
mod controller_predicates;
mod election;
mod election_world;
mod events;
mod faults;
mod finalizer;
mod health;
mod manager;
mod manager_proofs;
mod manager_serving;
mod metrics;
mod operator;
mod owner;
mod queue;
mod queue_shuttle;
mod serve;
mod world;
