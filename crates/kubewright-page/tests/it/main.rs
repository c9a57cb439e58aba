//! The debug page of a manager: over HTTP, and in a browser.

mod access;
mod browser;
mod content;
#[expect(dead_code, reason = "shared with the tests of the page of `kubewright dev`, which use all of it")]
mod driver;
mod world;
