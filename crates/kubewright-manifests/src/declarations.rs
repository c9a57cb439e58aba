//! What an operator's program prints of itself.
//!
//! Owns the form of that text. Programs are built with another release than the tool that reads them, so the form has
//! a number, and [`Declarations::read`] looks at it before anything else. What follows from the declarations is decided
//! elsewhere.

use serde::{Deserialize, Serialize};

use crate::declare::{Declared, Handler, Item, Kind, Rule, Webhook};

/// The form that this release writes and reads.
pub const FORMAT: u32 = 1;

/// All that an operator declares, by attributes and by the controllers that it registered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Declarations {
    /// The form of the text: [`FORMAT`].
    pub format: u32,
    /// What the program is called.
    pub program: String,
    /// Whether it can elect a leader.
    #[serde(default)]
    pub leader_election: bool,
    /// Where its lease is, if not in the operator's own namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leader_election_namespace: Option<String>,
    /// Whether it asks the API server who may read its metrics.
    #[serde(default)]
    pub secure_metrics: bool,
    /// Whether it records events.
    #[serde(default)]
    pub events: bool,
    /// The namespaces that it watches; all where empty.
    #[serde(default)]
    pub namespaces: Vec<String>,
    /// What attributes declare.
    #[serde(default)]
    pub declared: Vec<Declared>,
    /// Its controllers.
    #[serde(default)]
    pub controllers: Vec<ControllerDeclared>,
    /// Kinds that are cached without a controller, such as those that only have an index.
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

/// A controller that the program registers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ControllerDeclared {
    /// Its name, as logs and metrics have it.
    pub name: String,
    /// The kind that it is for.
    #[serde(rename = "for")]
    pub of: Resource,
    /// Kinds whose objects belong to one of those.
    pub owns: Vec<Resource>,
    /// Kinds that it watches for other reasons.
    pub watches: Vec<Resource>,
    /// Finalizers that it adds to objects of its kind.
    pub finalizers: Vec<String>,
    /// Whether it leaves the status of its kind alone.
    pub without_status: bool,
}

/// A kind of objects, and how paths and rights name it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Resource {
    /// API group; the core group is the empty one.
    pub group: String,
    /// API version.
    pub version: String,
    /// Kind.
    pub kind: String,
    /// Name in paths.
    pub plural: String,
    /// Whether objects are in namespaces.
    pub namespaced: bool,
}

/// Why a text is no list of declarations.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Not JSON, or JSON of another shape.
    #[error(
        "what the operator printed is not its declarations; does its `main` print anything on standard output \
         before `manager.run()`?"
    )]
    Shape(#[source] serde_json::Error),
    /// Written by another release.
    #[error(
        "the operator prints its declarations in form {found}, and this tool reads form {FORMAT}; use the same \
         release of the crate `kubewright` and of the command line (`cargo update -p kubewright`)"
    )]
    Format {
        /// The number in the text.
        found: u32,
    },
}

impl Declarations {
    /// An operator that declares nothing.
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
        }
    }

    /// Reads what a program printed.
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

    /// The rights that attributes ask for.
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

    /// Whether the manager serves a webhook.
    pub fn serves_webhooks(&self) -> bool {
        !self.webhooks.is_empty() || !self.conversions.is_empty()
    }

    /// The handlers that have `#[webhook]`, registered or not.
    pub fn handlers(&self) -> impl Iterator<Item = &Handler> {
        self.declared.iter().filter_map(|declared| match declared {
            Declared::Handler(handler) => Some(handler),
            _ => None,
        })
    }

    /// The versions of custom kinds.
    pub fn kinds(&self) -> impl Iterator<Item = &Kind> {
        self.declared.iter().filter_map(|declared| match declared {
            Declared::Kind(kind) => Some(kind),
            _ => None,
        })
    }

    /// Every kind that a controller is for, owns or watches, or that is cached without one.
    pub fn resources(&self) -> impl Iterator<Item = &Resource> {
        let of_controllers = self.controllers.iter().flat_map(|controller| {
            std::iter::once(&controller.of).chain(&controller.owns).chain(&controller.watches)
        });
        of_controllers.filter(|resource| !resource.plural.is_empty()).chain(&self.cached)
    }

    /// The program as a whole, for findings that are of no item in particular.
    pub(crate) fn whole(&self) -> Item {
        Item { path: self.program.clone(), ..Item::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_can_be_read_again() {
        let mut declarations = Declarations::new("guestbook");
        declarations.leader_election = true;
        declarations.namespaces.push("team-a".into());
        declarations.declared.push(Declared::Rule(Rule {
            groups: vec!["apps".into()],
            resources: vec!["deployments".into()],
            verbs: vec!["get".into()],
            ..Rule::default()
        }));
        declarations.controllers.push(ControllerDeclared {
            name: "guestbook".into(),
            of: Resource { kind: "Guestbook".into(), ..Resource::default() },
            ..ControllerDeclared::default()
        });
        let text = serde_json::to_string(&declarations).unwrap();
        assert_eq!(Declarations::read(&text).unwrap(), declarations);
    }

    #[test]
    fn another_form_is_told_before_its_fields_are_read() {
        let error = Declarations::read(r#"{"format": 2, "program": {"name": "guestbook"}}"#).unwrap_err();
        insta::assert_snapshot!(error, @"the operator prints its declarations in form 2, and this tool reads form 1; use the same release of the crate `kubewright` and of the command line (`cargo update -p kubewright`)");
    }

    #[test]
    fn other_output_of_the_program_is_told() {
        let error = Declarations::read("hello\n{}").unwrap_err();
        assert!(error.to_string().contains("standard output"), "{error}");
    }
}
