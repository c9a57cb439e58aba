//! Registers all kinds, controllers and webhooks. `kubewright create` and `kubewright delete` edit this file.

use kubewright::{Manager, RegisterError};

use crate::{api, controllers, webhooks};

kubewright::crds!(api::v1::MarkdownView);
kubewright::crds!(api::v2::MarkdownView);

/// Registers all controllers and webhooks with the manager.
pub fn register(manager: &Manager) -> Result<(), RegisterError> {
    controllers::markdown_view::register(manager)?;
    webhooks::v1::markdown_view::register(manager)?;
    webhooks::v1::markdown_view_conversion::register(manager)?;
    Ok(())
}
