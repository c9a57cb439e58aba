//! A Kubernetes API server: in-process for tests, over TLS for every client.
//!
//! [`ApiServer`] is the whole server as a value. It is a `tower` service, so a client can call it without a
//! socket; [`serve::Listening`] listens on one. Servers share no state and start in well under a millisecond;
//! [`ApiServer::fork`] copies a server with all its objects.
//!
//! Defaulting and validation are in `kubewright-apis` (built-in kinds) and `kubewright-apiextensions` (custom
//! resources). This crate routes requests to them and stores the results. It depends on no Kubernetes client;
//! its tests use unmodified ones.
//!
//! The modules are the stages of a request, in this order. `server/stages` wires them.

// The listener, the filter chain and the router.
pub mod serve;
mod server;
// The path, verb and options of a request.
mod request;
// Authentication, authorization and the audit log.
pub mod audit;
pub mod authn;
pub mod authz;
// Bodies, content negotiation and responses.
mod encoding;
// The handlers of verbs.
mod endpoints;
// managedFields on every write.
mod fieldmanager;
// Admission plugins, webhooks and policies.
mod admission;
mod webhook_client;
// The served resources, their strategies and the write path.
mod registry;
// Objects and their history, in memory and on disk.
pub mod storage;
// Garbage collection and other work after a commit.
mod after_commit;
// Values that the stages share.
pub mod certs;
pub mod clock;
mod ids;
mod off_worker;
mod stack;

pub use admission::{AdmissionPlugins, AdmissionPluginsError};
pub use encoding::body::Body;
pub use endpoints::version::{KubernetesVersion, VersionError};
pub use server::{ApiServer, Controllers, Options};
pub use webhook_client::WebhookAddress;
