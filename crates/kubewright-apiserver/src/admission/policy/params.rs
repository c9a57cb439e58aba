//! Policy parameters: the objects that a binding's `paramRef` names or selects.

use std::sync::Arc;

use kubewright_apimachinery::gvk::split_api_version;
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::selector::LabelSelector;
use serde_json::Value;

use super::compiled::Policy;
use crate::admission::Cluster;
use crate::encoding::response;
use crate::registry::resource::Resource;

/// The resource of a policy's `paramKind`, if there is one. The error has upstream's wording.
pub(crate) fn param_resource(cluster: &Cluster, policy: &Policy) -> Result<Option<Arc<Resource>>, String> {
    let Some((api_version, kind)) = &policy.param_kind else { return Ok(None) };
    let (group, version) = split_api_version(api_version);
    let registry = cluster.registry();
    let mut resources = registry.all();
    let found = resources.find(|resource| {
        resource.group() == group && resource.version() == version && resource.kind() == kind
    });
    match found {
        Some(resource) => Ok(Some(resource.clone())),
        None => {
            Err(format!("failed to find resource referenced by paramKind: '{group}/{version}, Kind={kind}'"))
        }
    }
}

/// The objects that a binding's `paramRef` refers to, or a single null without one. Errors have upstream's
/// wording.
pub(crate) fn collect(
    cluster: &Cluster,
    resource: Option<&Resource>,
    reference: &Value,
    namespace: &str,
) -> Result<Vec<Value>, String> {
    let Some(resource) = resource.filter(|_| !reference.is_null()) else { return Ok(vec![Value::Null]) };
    let given = reference.str_at("namespace");
    let namespace = match (resource.namespaced(), given.is_empty()) {
        (true, true) if namespace.is_empty() => {
            let why =
                "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources";
            return Err(why.to_owned());
        }
        (true, true) => namespace,
        (true, false) => given,
        (false, true) => "",
        (false, false) => {
            return Err("paramRef.namespace must not be provided for a cluster-scoped `paramKind`".to_owned());
        }
    };
    let name = reference.str_at("name");
    let params: Vec<Value> = if !name.is_empty() {
        let found = cluster.version(&resource.storage, &resource.key(namespace, name));
        found.iter().map(|version| response::object(resource, version)).collect()
    } else if reference.has("selector") {
        let selector =
            LabelSelector::from_object(reference.at("selector")).map_err(|error| error.to_string())?;
        let all = cluster.versions(&resource.storage, namespace);
        let selected = all.iter().filter(|version| selector.matches(&version.attributes));
        selected.map(|version| response::object(resource, version)).collect()
    } else {
        return Err("one of name or selector must be provided".to_owned());
    };
    if params.is_empty() && reference.str_at("parameterNotFoundAction") == "Deny" {
        return Err("no params found for policy binding with `Deny` parameterNotFoundAction".to_owned());
    }
    Ok(params)
}
