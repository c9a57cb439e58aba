//! Serves Markdown pages: a MarkdownView has a ConfigMap with its pages, a Deployment of viewers and a Service.
//!
//! The operator as a library, so that tests can import it.

pub mod api;
pub mod controllers;
pub mod registry;
