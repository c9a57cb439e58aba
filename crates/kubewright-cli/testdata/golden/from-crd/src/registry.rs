//! Registers all kinds, controllers and webhooks. `kubewright create` and `kubewright delete` edit this file.

use kubewright::{Manager, RegisterError};

use crate::{api, controllers};

kubewright::crds!(api::lab::v1::Oddity);
kubewright::crds!(api::lab::v1::Root);
kubewright::crds!(api::view::v1::MarkdownView);

/// Registers all controllers and webhooks with the manager.
pub fn register(manager: &Manager) -> Result<(), RegisterError> {
    controllers::lab::oddity::register(manager)?;
    controllers::lab::root::register(manager)?;
    controllers::view::markdown_view::register(manager)?;
    Ok(())
}
