//! The tests of custom resources, CRDs and descriptors.

use serde_json::Value;

use super::contents::{self, Contents, shown};
use super::server::{Answer, Server};
use super::{Outcome, State};

/// alm-examples must be JSON and not empty.
fn examples<'a>(bundle: &'a Contents, outcome: &mut Outcome) -> &'a [Value] {
    if let Some(broken) = &bundle.broken_examples {
        outcome.state = State::Error;
        outcome.errors.push(format!("the annotation alm-examples is not a JSON list: {broken}"));
    } else if bundle.examples.is_empty() && bundle.owned().next().is_some() {
        outcome.fail("the annotation alm-examples has no custom resources");
        outcome.suggest("add a sample of each kind to config/samples");
    }
    outcome.log = format!("{} custom resources in alm-examples\n", bundle.examples.len());
    &bundle.examples
}

/// Every custom resource has a spec, and the API server accepts it.
pub(super) async fn spec(bundle: &Contents, server: &Server, outcome: &mut Outcome) {
    for resource in examples(bundle, outcome) {
        if resource["spec"].is_null() {
            outcome.fail(format!("{} has no spec", shown(resource)));
            continue;
        }
        match server.dry_run(resource).await {
            Answer::Accepted(warnings) => {
                for warning in warnings {
                    outcome.suggest(format!("{}: {warning}", shown(resource)));
                }
            }
            Answer::Unknown => outcome.fail(format!("{}: no CRD in the bundle serves it", shown(resource))),
            Answer::Rejected(error) => outcome.fail(format!("{}: {error}", shown(resource))),
        }
    }
}

/// Every CRD has a schema, with every field of the custom resources, and the API server accepts it.
pub(super) async fn crds_have_validation(bundle: &Contents, server: &Server, outcome: &mut Outcome) {
    for (name, error) in server.refused_definitions() {
        outcome.fail(format!("the CRD {name} is not accepted: {error}"));
    }
    for definition in &bundle.definitions {
        for version in definition.value()["spec"]["versions"].as_array().into_iter().flatten() {
            if version["schema"]["openAPIV3Schema"].is_null() {
                let name = version["name"].as_str().unwrap_or_default();
                outcome.suggest(format!("add CRD validation for {} {name}", definition.name()));
            }
        }
    }
    for resource in examples(bundle, outcome) {
        let Some(schema) = bundle.schema(resource) else { continue };
        for block in ["spec", "status"] {
            for field in resource[block].as_object().into_iter().flat_map(|fields| fields.keys()) {
                let properties = &schema["properties"][block];
                let is_open = properties["x-kubernetes-preserve-unknown-fields"] == true;
                if properties["properties"][field].is_null() && !is_open {
                    outcome.fail(format!("{block} field {field} of {} has no validation", shown(resource)));
                    outcome.suggest(format!(
                        "add CRD validation for {block} field `{field}` in {}/{}",
                        resource["kind"].as_str().unwrap_or_default(),
                        contents::version(resource)
                    ));
                }
            }
        }
        if let Answer::Rejected(error) = server.dry_run(resource).await {
            outcome.fail(format!("{}: {error}", shown(resource)));
        }
    }
}

/// Every owned CRD lists the resources that its controller creates.
pub(super) fn crds_have_resources(bundle: &Contents, outcome: &mut Outcome) {
    for owned in bundle.owned() {
        if owned["resources"].as_array().is_none_or(Vec::is_empty) {
            let (name, version) = (text(&owned["name"]), text(&owned["version"]));
            outcome.fail(format!("the owned CRD {name} {version} has no resources"));
            outcome.suggest(format!(
                "register the kinds that the controller of {} creates with `.owns::<Kind>()`, or list them in the ClusterServiceVersion",
                text(&owned["kind"])
            ));
        }
    }
}

/// Every spec field of the custom resources has a descriptor.
pub(super) fn spec_descriptors(bundle: &Contents, outcome: &mut Outcome) {
    for resource in examples(bundle, outcome) {
        let Some(fields) = resource["spec"].as_object() else {
            outcome.fail(format!("{} has no spec", shown(resource)));
            continue;
        };
        let Some(owned) = owner(bundle, resource, outcome) else { continue };
        let descriptors = || owned["specDescriptors"].as_array().into_iter().flatten();
        for field in fields.keys().filter(|field| descriptors().all(|it| it["path"] != field.as_str())) {
            outcome.fail(format!("{field} does not have a spec descriptor"));
            outcome.suggest(format!("add a spec descriptor for {field}"));
        }
    }
}

/// Every kind with a status has status descriptors.
pub(super) fn status_descriptors(bundle: &Contents, outcome: &mut Outcome) {
    for resource in examples(bundle, outcome) {
        let Some(owned) = owner(bundle, resource, outcome) else { continue };
        let schema = bundle.schema(resource);
        let properties = schema.and_then(|schema| schema["properties"]["status"]["properties"].as_object());
        let has_status = resource["status"].as_object().is_some_and(|status| !status.is_empty())
            || properties.is_some_and(|properties| !properties.is_empty());
        let name = text(&owned["name"]);
        if !has_status {
            outcome.suggest(format!(
                "{name} has no status; objects whose state can differ from their spec should have one"
            ));
        } else if owned["statusDescriptors"].as_array().is_none_or(Vec::is_empty) {
            outcome.fail(format!("{name} does not have a status descriptor"));
            outcome.suggest(format!("add status descriptors for {name}"));
        }
    }
}

fn owner<'a>(bundle: &'a Contents, resource: &Value, outcome: &mut Outcome) -> Option<&'a Value> {
    let owned = bundle.owner(resource);
    if owned.is_none() {
        outcome.fail(format!("no owned CRD for {}", shown(resource)));
    }
    owned
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
