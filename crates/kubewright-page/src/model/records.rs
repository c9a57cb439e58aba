//! The records of the journal, as the page reads them.
//!
//! Unknown records and fields are skipped, so that operators of other kubewright versions work.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A journal record.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Record {
    Hello(Hello),
    Started(Started),
    Request(Call),
    Ended(Ended),
    Queue(Queue),
    Admission(Box<Admission>),
    Conversion(Conversion),
    #[serde(other)]
    Unknown,
}

#[derive(Debug, Deserialize)]
pub struct Hello {
    pub at: String,
    pub operator: String,
    #[serde(default)]
    pub pid: u32,
    #[serde(default)]
    pub controllers: Vec<String>,
    #[serde(default)]
    pub token: String,
}

#[derive(Debug, Deserialize)]
pub struct Started {
    pub at: String,
    pub id: String,
    pub controller: String,
    /// Empty for controllers whose keys are not objects.
    #[serde(default)]
    pub kind: String,
    #[serde(default)]
    pub namespace: String,
    pub name: String,
    #[serde(default)]
    pub attempt: u32,
    #[serde(default)]
    pub waited_ms: f64,
    #[serde(default)]
    pub causes: Vec<Cause>,
    #[serde(default)]
    pub more_causes: u64,
}

/// Why it was reconciled.
#[derive(Debug, Deserialize, Serialize)]
pub struct Cause {
    pub why: String,
    #[serde(default)]
    pub kind: String,
    #[serde(default)]
    pub namespace: String,
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub changed: Vec<String>,
    #[serde(default)]
    pub more: u64,
    /// Version of the object when the reconcile started.
    #[serde(default)]
    pub resource_version: Option<String>,
}

/// A call to the API server.
#[derive(Debug, Deserialize, Serialize)]
pub struct Call {
    #[serde(skip_serializing)]
    pub id: String,
    pub at: String,
    pub method: String,
    pub path: String,
    #[serde(default)]
    pub status: Option<u16>,
    #[serde(default)]
    pub ms: f64,
    #[serde(default)]
    pub error: Option<String>,
    /// Version of the written object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_version: Option<String>,
}

#[derive(Debug, Deserialize)]
pub struct Ended {
    pub id: String,
    pub ms: f64,
    pub outcome: String,
    #[serde(default)]
    pub after_s: Option<f64>,
    #[serde(default)]
    pub error: Option<String>,
}

#[derive(Debug, Deserialize)]
pub struct Queue {
    pub at: String,
    pub controller: String,
    pub depth: u64,
    #[serde(default)]
    pub active: u64,
}

/// An admission review.
#[derive(Debug, Deserialize, Serialize)]
pub struct Admission {
    pub at: String,
    pub webhook: String,
    pub operation: String,
    pub kind: String,
    #[serde(default)]
    pub subresource: String,
    #[serde(default)]
    pub namespace: String,
    pub name: String,
    #[serde(default)]
    pub user: String,
    #[serde(default)]
    pub dry_run: bool,
    pub allowed: bool,
    #[serde(default)]
    pub code: Option<u16>,
    #[serde(default)]
    pub message: Option<String>,
    #[serde(default)]
    pub warnings: Vec<String>,
    /// JSON patch operations, each with the value `before`.
    #[serde(default)]
    pub patch: Vec<Value>,
    #[serde(default)]
    pub more_patches: u64,
    pub ms: f64,
}

/// A conversion review.
#[derive(Debug, Deserialize, Serialize)]
pub struct Conversion {
    pub at: String,
    pub kind: String,
    pub from: Vec<String>,
    pub to: String,
    pub objects: u64,
    /// The first objects, as `namespace/name`.
    #[serde(default)]
    pub names: Vec<String>,
    #[serde(default)]
    pub error: Option<String>,
    pub ms: f64,
}
