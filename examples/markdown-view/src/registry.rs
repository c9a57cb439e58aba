//! Every kind and every controller of this operator. `kubewright create` and `kubewright delete` write this file.

use kubewright::{Manager, RegisterError};

use crate::{api, controllers};

kubewright::crds!(api::v1::MarkdownView);

/// Gives the manager all controllers.
pub fn register(manager: &Manager) -> Result<(), RegisterError> {
    controllers::markdown_view::register(manager)?;
    Ok(())
}
