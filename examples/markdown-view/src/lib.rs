//! Serves Markdown pages: each MarkdownView owns a ConfigMap with its pages, a Deployment of viewers and a
//! Service.
//!
//! Operator library, used by the binary and the tests.

pub mod api;
pub mod controllers;
pub mod registry;
pub mod webhooks;
