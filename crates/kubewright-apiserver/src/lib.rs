//! A Kubernetes API server: in-process for tests, over TLS for every client.
//!
//! [`ApiServer`] is the whole server as a value. It is a `tower` service, so a client can call it without a
//! socket; [`serve::Listening`] listens on one. Servers share no state and start in well under a millisecond;
//! [`ApiServer::fork`] copies a server with all its objects.
//!
//! Defaulting and validation are in `kubewright-apis` (built-in kinds) and `kubewright-apiextensions` (custom
//! resources). This crate routes requests to them and stores the results. It depends on no Kubernetes client;
//! its tests use unmodified ones.

mod admission;
mod after_commit;
pub mod audit;
pub mod auth;
mod body;
mod bootstrap;
pub mod certs;
pub mod clock;
mod compaction;
mod conversion;
mod crd_controller;
mod custom;
mod delete;
mod discovery;
mod fieldmanager;
mod gc;
mod ids;
mod input;
mod kinds;
mod negotiate;
mod openapi;
mod options;
mod output;
mod patch;
mod pki;
mod read;
mod request;
mod resources;
mod reviews;
mod rules;
mod scale;
pub mod serve;
mod server;
mod service_ips;
mod signing;
mod stack;
pub mod storage;
mod subresources;
pub mod tokens;
mod version;
mod watch;
mod webhook_client;
mod write;

pub use admission::{AdmissionPlugins, UnknownPlugin};
pub use body::Body;
pub use server::{ApiServer, Controllers, Options};
pub use version::{KubernetesVersion, VersionError};
pub use webhook_client::WebhookAddress;
