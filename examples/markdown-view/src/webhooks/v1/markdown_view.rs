//! Webhooks for MarkdownView, version v1 of view.example.com.

use kubewright::webhook::{AdmissionRequest, Defaulter, Rejection, Validation, Validator};
use kubewright::{Manager, RegisterError, webhook};

use crate::api::v1::MarkdownView;

/// Registers the webhooks with the manager.
pub fn register(manager: &Manager) -> Result<(), RegisterError> {
    manager.defaulter(MarkdownViewDefaulter)?;
    manager.validator(MarkdownViewValidator)?;
    Ok(())
}

/// Sets the image of the viewer.
#[derive(Debug)]
pub struct MarkdownViewDefaulter;

#[webhook]
impl Defaulter for MarkdownViewDefaulter {
    type Object = MarkdownView;

    async fn default(&self, view: &mut MarkdownView, _: &AdmissionRequest) -> Result<(), Rejection> {
        // The schema has a default for an absent image, not for an empty one.
        if view.spec.viewer_image.is_empty() {
            "peaceiris/mdbook:latest".clone_into(&mut view.spec.viewer_image);
        }
        Ok(())
    }
}

/// Validates the number of replicas and the pages.
#[derive(Debug)]
pub struct MarkdownViewValidator;

#[webhook]
impl Validator for MarkdownViewValidator {
    type Object = MarkdownView;

    async fn validate_create(&self, view: &MarkdownView, v: &mut Validation<'_>) -> Result<(), Rejection> {
        let replicas = view.spec.replicas;
        if !(1..=5).contains(&replicas) {
            v.invalid("spec.replicas", replicas, "must be between 1 and 5");
        }
        if !view.spec.markdowns.contains_key("SUMMARY.md") {
            v.required("spec.markdowns", "SUMMARY.md is missing");
        }
        Ok(())
    }
}
