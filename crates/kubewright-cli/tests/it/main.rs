//! Runs the real binary and compares its output. [`page`] serves the web UI of the library.

#[cfg(unix)]
mod adopt;
#[cfg(unix)]
mod binaries;
#[cfg(unix)]
mod book;
mod chart;
mod color;
mod completion;
mod crash;
#[cfg(unix)]
mod delivery;
#[cfg(unix)]
mod deploy;
#[cfg(unix)]
mod dev;
mod help;
mod help_commands;
#[cfg(unix)]
mod hostile;
#[cfg(unix)]
mod kubectl;
mod logs;
#[cfg(unix)]
mod manifests;
// Shared with the tests of kubewright-envtest.
#[cfg(unix)]
#[path = "../../../kubewright-envtest/tests/it/webhooks.rs"]
mod manager_webhooks;
#[cfg(unix)]
#[path = "../../../kubewright-envtest/tests/it/markdown_view.rs"]
mod markdown_view;
#[cfg(unix)]
mod modes;
mod output;
#[cfg(unix)]
mod page;
mod reference;
#[cfg(unix)]
mod replay;
mod run;
#[cfg(unix)]
#[path = "../../../kubewright-envtest/tests/it/runtime.rs"]
mod runtime;
#[cfg(unix)]
mod scaffold;
#[cfg(unix)]
mod terminal;
#[cfg(unix)]
#[path = "../../../kubewright-envtest/tests/it/tutorial.rs"]
mod tutorial;
mod usage;
mod version;
