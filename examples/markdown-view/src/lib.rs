//! Serves Markdown pages: each MarkdownView owns a ConfigMap with its pages, a Deployment of viewers and a
//! Service.
//!
//! A library, so that tests can import the operator.

pub mod api;
pub mod controllers;
pub mod registry;
pub mod webhooks;
