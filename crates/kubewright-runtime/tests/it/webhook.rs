//! Admission and conversion webhooks, called as the API server calls them.

mod admission;
mod api_services;
mod bodies;
mod certificates;
pub(crate) mod conversion;
mod injection;
mod modes;
mod rotations;
mod serving;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use kubewright_runtime::webhook::Webhooks;
use serde_json::Value;

/// Sends a review to a path and returns the status code and the decoded body.
pub(crate) async fn post(webhooks: &Webhooks, path: &str, review: &Value) -> (u16, Value) {
    let request = http::Request::post(path).header("content-type", "application/json; charset=utf-8");
    let body = Full::new(Bytes::from(review.to_string()));
    let response = webhooks.handle(request.body(body).expect("a valid request")).await;
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.expect("a whole body").to_bytes();
    (status, serde_json::from_slice(&body).unwrap_or_else(|_| String::from_utf8_lossy(&body).into()))
}
