//! The JSON report that an operator's program prints about itself.
//!
//! The program and the tool may be of different releases, so the format has a version number, which
//! [`Inventory::read`] checks first.

use serde::{Deserialize, Serialize};

use crate::declare::{Declared, Handler, Item, Kind, Olm, Rule, Webhook};

/// The format version of this release.
pub const FORMAT: u32 = 1;

/// Everything that an operator declares, by attributes and registered controllers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Inventory {
    /// The format version: [`FORMAT`].
    pub format: u32,
    /// The name of the program.
    pub program: String,
    /// Whether it supports leader election.
    #[serde(default)]
    pub leader_election: bool,
    /// The namespace of its lease, if it is not the operator's namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leader_election_namespace: Option<String>,
    /// Whether it authorizes metrics requests with the API server.
    #[serde(default)]
    pub secure_metrics: bool,
    /// Whether it records events.
    #[serde(default)]
    pub events: bool,
    /// The watched namespaces; empty for all.
    #[serde(default)]
    pub namespaces: Vec<String>,
    /// The declarations of attributes.
    #[serde(default)]
    pub declared: Vec<Declared>,
    /// Its controllers.
    #[serde(default)]
    pub controllers: Vec<ControllerDeclared>,
    /// Kinds that are cached without a controller, such as kinds with only an index.
    #[serde(default)]
    pub cached: Vec<Resource>,
    /// Admission webhooks that are registered with its manager.
    #[serde(default)]
    pub webhooks: Vec<Webhook>,
    /// Whether the manager keeps the certificates of its webhooks itself.
    #[serde(default)]
    pub webhook_certificates: bool,
    /// Conversions that are registered with its manager.
    #[serde(default)]
    pub conversions: Vec<ConversionDeclared>,
    /// API groups that its manager serves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub api_services: Vec<ApiServiceDeclared>,
}

/// A version of an API group that the program serves.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ApiServiceDeclared {
    /// API group.
    pub group: String,
    /// Version.
    pub version: String,
}

impl ApiServiceDeclared {
    /// The name of the APIService.
    pub fn name(&self) -> String {
        format!("{}.{}", self.version, self.group)
    }
}

/// A kind whose versions the program converts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConversionDeclared {
    /// API group.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// The versions that it converts: the hub first, then the spokes.
    pub versions: Vec<String>,
}

/// A registered controller.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ControllerDeclared {
    /// The name in logs and metrics.
    pub name: String,
    /// The reconciled kind.
    #[serde(rename = "for")]
    pub of: Resource,
    /// Owned kinds.
    pub owns: Vec<Resource>,
    /// Other watched kinds.
    pub watches: Vec<Resource>,
    /// Finalizers that it adds to objects of its kind.
    pub finalizers: Vec<String>,
    /// Whether it does not write the status of its kind.
    pub without_status: bool,
    /// Whether it records no events.
    pub without_events: bool,
}

/// A kind and its resource.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Resource {
    /// The API group; empty for core.
    pub group: String,
    /// The API version.
    pub version: String,
    /// The kind.
    pub kind: String,
    /// The plural name.
    pub plural: String,
    /// Whether it is namespaced.
    pub namespaced: bool,
}

/// Why the output of a program cannot be parsed.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Not JSON, or unexpected JSON.
    #[error(
        "failed to parse the operator's inventory; check that `main` prints nothing to standard output \
         before `manager.run()`"
    )]
    Shape(#[source] serde_json::Error),
    /// Written by another release.
    #[error(
        "the operator prints its inventory in format {found}, but this tool reads format {FORMAT}; use the same \
         release of the `kubewright` crate and the command-line tool (`cargo update -p kubewright`)"
    )]
    Format {
        /// The format version in the output.
        found: u32,
    },
}

impl Inventory {
    /// An operator without declarations.
    pub fn new(program: impl Into<String>) -> Self {
        Self {
            format: FORMAT,
            program: program.into(),
            leader_election: false,
            leader_election_namespace: None,
            secure_metrics: false,
            events: false,
            namespaces: Vec::new(),
            declared: Vec::new(),
            controllers: Vec::new(),
            cached: Vec::new(),
            webhooks: Vec::new(),
            webhook_certificates: false,
            conversions: Vec::new(),
            api_services: Vec::new(),
        }
    }

    /// Parses the output of a program.
    pub fn read(text: &str) -> Result<Self, ReadError> {
        #[derive(Deserialize)]
        struct Numbered {
            format: u32,
        }
        let Numbered { format } = serde_json::from_str(text).map_err(ReadError::Shape)?;
        if format != FORMAT {
            return Err(ReadError::Format { found: format });
        }
        serde_json::from_str(text).map_err(ReadError::Shape)
    }

    /// The declared RBAC rules.
    pub fn rules(&self) -> impl Iterator<Item = &Rule> {
        self.declared.iter().filter_map(|declared| match declared {
            Declared::Rule(rule) => Some(rule),
            _ => None,
        })
    }

    /// All admission webhooks: those that the manager serves, and those that are served outside of the cluster.
    pub fn webhooks(&self) -> impl Iterator<Item = &Webhook> {
        let elsewhere = self.declared.iter().filter_map(|declared| match declared {
            Declared::Webhook(webhook) => Some(&**webhook),
            _ => None,
        });
        self.webhooks.iter().chain(elsewhere)
    }

    /// Whether the manager records events: those of its controllers, and those of the certificates of its webhooks.
    /// Without controllers, they come from tasks.
    pub(crate) fn records_events(&self) -> bool {
        let all_without = !self.controllers.is_empty() && self.controllers.iter().all(|it| it.without_events);
        self.events && (!all_without || self.serves_webhooks())
    }

    /// Whether the manager runs a webhook server.
    pub fn serves_webhooks(&self) -> bool {
        !self.webhooks.is_empty() || !self.conversions.is_empty() || !self.api_services.is_empty()
    }

    /// The handlers that have `#[webhook]`, registered or not.
    pub fn handlers(&self) -> impl Iterator<Item = &Handler> {
        self.declared.iter().filter_map(|declared| match declared {
            Declared::Handler(handler) => Some(handler),
            _ => None,
        })
    }

    /// The declared versions of custom resources.
    pub fn kinds(&self) -> impl Iterator<Item = &Kind> {
        self.declared.iter().filter_map(|declared| match declared {
            Declared::Kind(kind) => Some(kind),
            _ => None,
        })
    }

    /// The texts for OLM bundles.
    pub fn olm(&self) -> impl Iterator<Item = &Olm> {
        self.declared.iter().filter_map(|declared| match declared {
            Declared::Olm(olm) => Some(olm),
            _ => None,
        })
    }

    /// All kinds that controllers reconcile, own or watch, or that are cached without a controller.
    pub fn resources(&self) -> impl Iterator<Item = &Resource> {
        let of_controllers = self.controllers.iter().flat_map(|controller| {
            std::iter::once(&controller.of).chain(&controller.owns).chain(&controller.watches)
        });
        of_controllers.filter(|resource| !resource.plural.is_empty()).chain(&self.cached)
    }

    /// The item for findings about the whole program.
    pub(crate) fn whole(&self) -> Item {
        Item { path: self.program.clone(), ..Item::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_round_trip_as_json() {
        let mut inventory = Inventory::new("guestbook");
        inventory.leader_election = true;
        inventory.namespaces.push("team-a".into());
        inventory.declared.push(Declared::Rule(Rule {
            groups: vec!["apps".into()],
            resources: vec!["deployments".into()],
            verbs: vec!["get".into()],
            ..Rule::default()
        }));
        inventory.controllers.push(ControllerDeclared {
            name: "guestbook".into(),
            of: Resource { kind: "Guestbook".into(), ..Resource::default() },
            ..ControllerDeclared::default()
        });
        let text = serde_json::to_string(&inventory).unwrap();
        assert_eq!(Inventory::read(&text).unwrap(), inventory);
    }

    #[test]
    fn another_format_version_is_reported_before_its_fields_are_parsed() {
        let error = Inventory::read(r#"{"format": 2, "program": {"name": "guestbook"}}"#).unwrap_err();
        insta::assert_snapshot!(error, @"the operator prints its inventory in format 2, but this tool reads format 1; use the same release of the `kubewright` crate and the command-line tool (`cargo update -p kubewright`)");
    }

    #[test]
    fn other_output_of_the_program_is_an_error() {
        let error = Inventory::read("hello\n{}").unwrap_err();
        assert!(error.to_string().contains("standard output"), "{error}");
    }
}
