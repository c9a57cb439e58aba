//! Serves Markdown pages: a MarkdownView has a ConfigMap with its pages, a Deployment of viewers and a Service.

pub mod api;
pub mod controllers;
pub mod registry;
