//! Conversion of MarkdownView between its versions. The hub version is v1.

use kubewright::webhook::{BoxError, Conversion, Spoke};
use kubewright::{Manager, RegisterError};

use crate::api::{v1, v2};

/// Registers the conversion with the manager.
pub fn register(manager: &Manager) -> Result<(), RegisterError> {
    manager.conversion(conversion())?;
    Ok(())
}

/// Converts between all versions.
pub fn conversion() -> Conversion {
    Conversion::hub::<v1::MarkdownView>().spoke::<v2::MarkdownView>()
}

impl Spoke for v2::MarkdownView {
    type Hub = v1::MarkdownView;

    fn to_hub(&self) -> Result<Self::Hub, BoxError> {
        let v2::MarkdownViewSpec { pages, replicas, viewer } = self.spec.clone();
        let spec = v1::MarkdownViewSpec { markdowns: pages, replicas, viewer_image: viewer.image };
        let status = self.status.clone().map(|it| v1::MarkdownViewStatus { conditions: it.conditions });
        Ok(v1::MarkdownView { metadata: self.metadata.clone(), spec, status })
    }

    fn from_hub(hub: &Self::Hub) -> Result<Self, BoxError> {
        let v1::MarkdownViewSpec { markdowns, replicas, viewer_image } = hub.spec.clone();
        let viewer = v2::Viewer { image: viewer_image };
        let spec = v2::MarkdownViewSpec { pages: markdowns, replicas, viewer };
        let status = hub.status.clone().map(|it| v2::MarkdownViewStatus { conditions: it.conditions });
        Ok(Self { metadata: hub.metadata.clone(), spec, status })
    }
}
