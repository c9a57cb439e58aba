//! REST mapper: finds the resource of a kind that is known only at run time.
//!
//! It discovers each group version on first use and caches the result. A missing kind is looked up again at most once a
//! second, because its CRD may have been installed since.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::Request;
use serde::Deserialize;
use tokio::time::Instant;

use super::{Client, Error};
use crate::{Gvk, Kind, Scope};

const AGAIN: Duration = Duration::from_secs(1);

/// The kinds of each group version, and when they were discovered.
type Groups = BTreeMap<(String, String), (BTreeMap<String, Kind>, Instant)>;

#[derive(Default)]
pub(crate) struct Mapper {
    groups: Mutex<Groups>,
}

#[derive(Deserialize)]
struct Resources {
    resources: Vec<Resource>,
}

#[derive(Deserialize)]
struct Resource {
    name: String,
    kind: String,
    namespaced: bool,
}

impl Mapper {
    pub(crate) async fn kind(&self, client: &Client, gvk: &Gvk) -> Result<Kind, Error> {
        let id = (gvk.group.clone(), gvk.version.clone());
        if let Some((kinds, asked)) = self.groups().get(&id) {
            match kinds.get(&gvk.kind) {
                Some(kind) => return Ok(kind.clone()),
                None if asked.elapsed() < AGAIN => return Err(Error::UnknownKind(gvk.clone())),
                None => {}
            }
        }
        let path = if gvk.group.is_empty() {
            format!("/api/{}", gvk.version)
        } else {
            format!("/apis/{}", gvk.api_version())
        };
        let request = Request::get(path).body(Vec::new()).map_err(Error::Build)?;
        let kinds = match client.send(request).await {
            Ok(body) => read(&body, gvk)?,
            Err(error) if error.is_not_found() => BTreeMap::new(),
            Err(error) => return Err(error),
        };
        let found = kinds.get(&gvk.kind).cloned();
        self.groups().insert(id, (kinds, Instant::now()));
        found.ok_or_else(|| Error::UnknownKind(gvk.clone()))
    }

    fn groups(&self) -> MutexGuard<'_, Groups> {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read(body: &[u8], gvk: &Gvk) -> Result<BTreeMap<String, Kind>, Error> {
    let what = || format!("the resources of {}", gvk.api_version());
    let list: Resources =
        serde_json::from_slice(body).map_err(|source| Error::Decode { what: what(), source })?;
    // Names with a slash are subresources.
    let whole = list.resources.into_iter().filter(|resource| !resource.name.contains('/'));
    let kinds = whole.map(|resource| {
        let scope = if resource.namespaced { Scope::Namespaced } else { Scope::Cluster };
        let gvk = Gvk { kind: resource.kind.clone(), ..gvk.clone() };
        (resource.kind, Kind::new(gvk, resource.name, scope))
    });
    Ok(kinds.collect())
}
