//! kubectl with a custom resource: MarkdownView.

mod apply;
mod conversion;
mod definition;
mod generated;
mod get;
mod invalid;
mod migrate;
mod status;
mod update;
mod versions;

use super::cluster::Cluster;

/// A CRD with two versions, one deprecated; status, scale, printer columns, defaults and validation rules.
pub(crate) const DEFINITION: &str = include_str!("custom/markdownviews.yaml");

pub(crate) const GUIDE: &str = "\
apiVersion: view.example.com/v1
kind: MarkdownView
metadata: {name: guide, labels: {app: docs}}
spec:
  host: docs.example.com
  replicas: 2
  pages:
  - {name: intro, title: Welcome, text: Hello there.}
  - {name: setup, title: Set up}
  tags: [one, two]
";

const NOTES: &str = "\
apiVersion: view.example.com/v1
kind: MarkdownView
metadata: {name: notes}
spec: {theme: dark, pages: [{name: all}]}
";

/// A server with the CRD and one object.
#[track_caller]
pub(crate) fn with_guide() -> Cluster {
    let cluster = Cluster::with(DEFINITION);
    cluster.create(GUIDE);
    cluster
}
