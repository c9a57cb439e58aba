//! A Kubernetes control plane for tests, in one line.
//!
//! ```
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use kube::api::{Api, PostParams};
//! use kubewright_envtest::Environment;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let env = Environment::start().await?;
//! let namespace = env.namespace().await?;
//! let maps: Api<ConfigMap> = Api::namespaced(env.client(), &namespace);
//! let map: ConfigMap = serde_json::from_str(r#"{"metadata": {"name": "a"}, "data": {"x": "1"}}"#)?;
//! maps.create(&PostParams::default(), &map).await?;
//! assert_eq!(maps.get("a").await?.data, map.data);
//! # Ok(())
//! # }
//! ```
//!
//! # Control planes
//!
//! - **Embedded** by default: an API server in the test process, without a socket. It starts in about a millisecond, is
//!   separate for each environment, and is dropped with it.
//! - **Real binaries** with `KUBEBUILDER_ASSETS=DIR`: `etcd` and `kube-apiserver` from that directory, like Go's
//!   envtest.
//! - **An existing cluster** with `USE_EXISTING_CLUSTER=true`: the current kubeconfig context. It calls the webhooks of
//!   managers at the host of `KUBEWRIGHT_WEBHOOK_HOST`.
//!
//! The same test runs on all three. Where they differ, check [`Environment::capabilities`].
//!
//! # Features
//!
//! - [`Environment`]: clients, kubeconfig, a namespace per test, CRDs, fixtures, users, managers.
//! - Managers run as their ServiceAccount with the generated role, so that a missing permission fails the test. The
//!   test's own clients act as the administrator.
//! - [`eventually`] and [`consistently`]: polling assertions, which take no real time on tokio's paused clock.
//! - [`Environment::fixtures`]: objects in a directory with the expected responses, for tests of webhooks.
//! - [`examples`]: random objects of a type, for property tests.
//! - [`matches_yaml`]: compares an object with the expected YAML.
//! - [`Faults`]: fault injection and recorded requests.
//! - [`Logs`] and [`Metrics`]: captured logs and metrics.

mod account;
mod assets;
mod compare;
mod environment;
mod examples;
mod faults;
mod fixtures;
mod install;
mod logs;
mod metrics;
mod mode;
mod operator;
mod operator_webhooks;
mod plane;
mod running;
mod user;
mod webhooks;
mod yaml;

pub use account::OperatorKubeconfigError;
pub use compare::{Mismatch, matches_yaml};
pub use environment::{Builder, Capabilities, Environment, StartError};
pub use examples::examples;
pub use faults::{Effect, Faults, RecordedRequest};
pub use fixtures::{FixtureMismatch, FixtureMismatches, FixturesError};
pub use install::InstallError;
pub use kubewright_apimachinery::permission::Permission;
pub use kubewright_manifests::rbac::Unused;
pub use kubewright_runtime::{ConsistentlyError, EventuallyError, consistently, eventually};
pub use logs::Logs;
pub use metrics::Metrics;
pub use mode::{Mode, ModeError};
pub use operator_webhooks::{OperatorWebhooks, OperatorWebhooksError};
pub use running::Running;
pub use user::Permissions;
pub use webhooks::existing::WebhookHostError;
pub use yaml::{FixtureError, objects};

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
