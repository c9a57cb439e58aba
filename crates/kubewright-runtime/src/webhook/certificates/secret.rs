//! The Secret that the replicas share.
//!
//! Owns its keys. A Secret that cannot be parsed is an error and is never overwritten, because it may belong to another
//! component.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Authority, Leaf, Material, Retired, Validity};

const CA: (&str, &str) = ("ca.crt", "ca.key");
const NEXT: (&str, &str) = ("next-ca.crt", "next-ca.key");
const PREVIOUS: &str = "previous-ca.crt";
const LEAF: (&str, &str) = ("tls.crt", "tls.key");
/// When each certificate is valid, and for which names.
const STATE: &str = "state.json";

/// The Secret does not contain webhook certificates.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// A key is absent.
    #[error("key {0} is missing; delete the Secret to recreate the certificates")]
    Absent(&'static str),
    /// A value is not UTF-8.
    #[error("key {0} is not UTF-8; delete the Secret to recreate the certificates")]
    NotText(&'static str),
    /// The state cannot be parsed.
    #[error("key {STATE} is invalid; delete the Secret to recreate the certificates")]
    State(#[source] serde_json::Error),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct State {
    ca: Validity,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    next: Option<Validity>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    previous_needed_until: Option<Timestamp>,
    leaf: Validity,
    names: Vec<String>,
}

impl Material {
    /// The `data` of the Secret, before base64.
    pub fn to_data(&self) -> BTreeMap<String, Vec<u8>> {
        let state = State {
            ca: self.ca.validity,
            next: self.next.as_ref().map(|next| next.validity),
            previous_needed_until: self.previous.as_ref().map(|previous| previous.needed_until),
            leaf: self.leaf.validity,
            names: self.leaf.names.clone(),
        };
        let state = serde_json::to_string(&state).expect("times and names are JSON");
        let mut data = BTreeMap::new();
        let mut put = |key: &str, value: &str| data.insert(key.to_owned(), value.as_bytes().to_vec());
        put(STATE, &state);
        put(CA.0, &self.ca.certificate);
        put(CA.1, &self.ca.key);
        put(LEAF.0, &self.leaf.certificate);
        put(LEAF.1, &self.leaf.key);
        if let Some(next) = &self.next {
            put(NEXT.0, &next.certificate);
            put(NEXT.1, &next.key);
        }
        if let Some(previous) = &self.previous {
            put(PREVIOUS, &previous.certificate);
        }
        data
    }

    /// Parses the `data` of the Secret. `None` if it is empty, as a manifest may create it.
    pub fn from_data(data: &BTreeMap<String, Vec<u8>>) -> Result<Option<Self>, SecretError> {
        if data.is_empty() {
            return Ok(None);
        }
        let text = |key: &'static str| {
            let bytes = data.get(key).ok_or(SecretError::Absent(key))?;
            String::from_utf8(bytes.clone()).map_err(|_| SecretError::NotText(key))
        };
        let state: State = serde_json::from_str(&text(STATE)?).map_err(SecretError::State)?;
        let authority = |keys: (&'static str, &'static str), validity| {
            Ok::<_, SecretError>(Authority { certificate: text(keys.0)?, key: text(keys.1)?, validity })
        };
        let previous = state
            .previous_needed_until
            .map(|needed_until| Ok::<_, SecretError>(Retired { certificate: text(PREVIOUS)?, needed_until }));
        Ok(Some(Self {
            ca: authority(CA, state.ca)?,
            next: state.next.map(|validity| authority(NEXT, validity)).transpose()?,
            previous: previous.transpose()?,
            leaf: Leaf {
                certificate: text(LEAF.0)?,
                key: text(LEAF.1)?,
                validity: state.leaf,
                names: state.names,
            },
        }))
    }
}
