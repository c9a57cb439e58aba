//! Flags of kubebuilder that tutorials use and that have no effect here. They are accepted with a note.

use crate::ui::Ui;

/// Flags of every kubebuilder command.
#[derive(Debug, clap::Args)]
pub(crate) struct Global {
    #[arg(long, value_name = "PLUGINS", hide = true)]
    plugins: Option<String>,

    #[arg(long, value_name = "VERSION", hide = true)]
    project_version: Option<String>,
}

/// Flags of `kubebuilder init`.
#[derive(Debug, clap::Args)]
pub(crate) struct Init {
    #[arg(long, value_name = "MODULE", hide = true)]
    repo: Option<String>,

    #[arg(long, value_name = "BOOL", hide = true)]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    skip_go_version_check: Option<bool>,

    #[arg(long, value_name = "BOOL", hide = true)]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    fetch_deps: Option<bool>,

    #[arg(long, value_name = "BOOL", hide = true)]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    component_config: Option<bool>,

    #[arg(long, value_name = "FILE", hide = true)]
    license_file: Option<String>,

    #[command(flatten)]
    global: Global,
}

/// Flags of `kubebuilder create api`.
#[derive(Debug, clap::Args)]
pub(crate) struct Create {
    #[arg(long, value_name = "BOOL", hide = true)]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    make: Option<bool>,

    #[arg(long, value_name = "BOOL", hide = true)]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    ssa: Option<bool>,

    #[arg(long, value_name = "VERSION", hide = true)]
    crd_version: Option<String>,

    #[command(flatten)]
    global: Global,
}

/// Flags of `kubebuilder create webhook`.
#[derive(Debug, clap::Args)]
pub(crate) struct Webhook {
    #[arg(long, value_name = "BOOL", hide = true)]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    make: Option<bool>,

    #[arg(long, value_name = "BOOL", hide = true)]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    legacy: Option<bool>,

    #[arg(long = "webhook-version", value_name = "VERSION", hide = true)]
    api_version: Option<String>,

    #[command(flatten)]
    global: Global,
}

impl Global {
    /// Notes the given flags.
    pub(crate) fn note(&self, ui: &Ui) {
        note(ui, "plugins", self.plugins.is_some(), "kubewright has no plugins");
        note(ui, "project-version", self.project_version.is_some(), "the project version is always 3");
    }
}

impl Init {
    /// Notes the given flags.
    pub(crate) fn note(&self, ui: &Ui) {
        note(ui, "repo", self.repo.is_some(), "cargo packages have no module path");
        note(ui, "skip-go-version-check", self.skip_go_version_check.is_some(), "Go is not needed");
        note(ui, "fetch-deps", self.fetch_deps.is_some(), "cargo fetches dependencies when it builds");
        note(ui, "component-config", self.component_config.is_some(), "the manager is configured with flags");
        note(
            ui,
            "license-file",
            self.license_file.is_some(),
            "edit LICENSE, or use --owner for file headers",
        );
        self.global.note(ui);
    }
}

impl Create {
    /// Notes the given flags.
    pub(crate) fn note(&self, ui: &Ui) {
        note(ui, "make", self.make.is_some(), "the CRD and RBAC rules are generated without a build");
        note(ui, "ssa", self.ssa.is_some(), "derive ApplyConfiguration on the types instead");
        note(ui, "crd-version", self.crd_version.is_some(), "CRDs always use apiextensions.k8s.io/v1");
        self.global.note(ui);
    }
}

impl Webhook {
    /// Notes the given flags.
    pub(crate) fn note(&self, ui: &Ui) {
        note(ui, "make", self.make.is_some(), "the webhook configurations are generated without a build");
        note(ui, "legacy", self.legacy.is_some(), "handlers are in src/webhooks");
        note(
            ui,
            "webhook-version",
            self.api_version.is_some(),
            "webhooks always use admissionregistration.k8s.io/v1",
        );
        self.global.note(ui);
    }
}

fn note(ui: &Ui, flag: &str, given: bool, why: &str) {
    if given {
        ui.note(&format!("--{flag} has no effect: {why}"));
    }
}
