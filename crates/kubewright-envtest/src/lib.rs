//! A Kubernetes control plane in a test, with one line.
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
//! # Where the control plane is
//!
//! - **Embedded** by default: a whole API server in this process, without a socket. It starts in about a
//!   millisecond, each environment is a world of its own, and it is gone when the environment is dropped.
//! - **Real binaries** with `KUBEBUILDER_ASSETS=DIR`: the `etcd` and `kube-apiserver` of that folder, as Go's envtest
//!   starts them.
//! - **An existing cluster** with `USE_EXISTING_CLUSTER=true`: the current kubeconfig.
//!
//! The same test runs on all three. Where they differ, a test asks [`Environment::capabilities`] instead of being
//! surprised.
//!
//! # What is in it
//!
//! - [`Environment`]: client, kubeconfig, a namespace per test, definitions, fixtures, users, managers.
//! - Managers run as their ServiceAccount with the generated role, so that a missing permission fails the test; the
//!   test's own clients are the administrator's.
//! - [`eventually`] and [`consistently`]: what must come true, or stay true. On tokio's paused clock they cost no time.
//! - [`Environment::fixtures`]: objects in a folder, and the answers that are expected: the tests of webhooks.
//! - [`examples`]: random objects of a type, for property tests.
//! - [`matches_yaml`]: compares an object with what a YAML text says of it.
//! - [`Faults`]: a connection that fails when told to, and remembers what was asked.
//! - [`Logs`] and [`Metrics`]: what was logged, and what was counted.

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
mod plane;
mod running;
mod user;
mod webhooks;
mod yaml;

pub use compare::{Mismatch, matches_yaml};
pub use environment::{Builder, Capabilities, Environment, StartError};
pub use examples::examples;
pub use faults::{Asked, Effect, Faults};
pub use fixtures::{FixtureMismatch, FixtureMismatches, FixturesError};
pub use install::InstallError;
pub use kubewright_apimachinery::permission::Permission;
pub use kubewright_manifests::rbac::Unused;
pub use kubewright_runtime::{NeverError, NotConsistentError, consistently, eventually};
pub use logs::Logs;
pub use metrics::Metrics;
pub use mode::{Mode, ModeError};
pub use running::Running;
pub use user::Rights;
pub use yaml::{FixtureError, objects};
