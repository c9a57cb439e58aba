//! Responses of webhooks: decodes the object, with client-go's errors.

use bytes::Bytes;
use http::header;
use kubewright_apimachinery::object::Fields as _;
use serde_json::Value;

use crate::encoding::request_body;

/// An HTTP response.
pub(super) struct Answer {
    status: u16,
    is_text: bool,
    body: Bytes,
}

impl Answer {
    pub(super) fn new(parts: &http::response::Parts, body: Bytes) -> Self {
        let content_type = parts.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let is_text = content_type.is_none_or(|value| value.starts_with("text/"));
        Self { status: parts.status.as_u16(), is_text, body }
    }

    /// Decodes the object in the body, JSON or YAML.
    pub(super) fn decode(&self) -> Result<Value, String> {
        if !(200..=206).contains(&self.status) {
            return Err(self.failure());
        }
        let (value, _) = request_body::applied(&self.body)?;
        let kind = match &value {
            Value::Object(_) => return Ok(value),
            // Null decodes into an empty object.
            Value::Null => return Ok(Value::Object(serde_json::Map::new())),
            Value::String(_) => "string",
            Value::Bool(_) => "bool",
            Value::Number(_) => "number",
            Value::Array(_) => "array",
        };
        Err(format!(
            "couldn't get version/kind; json parse error: json: cannot unmarshal {kind} into Go value of type struct \
             {{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \
             \"json:\\\"kind,omitempty\\\"\" }}"
        ))
    }

    fn failure(&self) -> String {
        if let Ok((status, _)) = request_body::applied(&self.body)
            && status.str_at("status") == "Failure"
            && matches!(status.str_at("kind"), "" | "Status")
        {
            return status.str_at("message").to_owned();
        }
        let text = if self.is_text {
            String::from_utf8_lossy(&self.body[..self.body.len().min(2048)]).trim().to_owned()
        } else {
            "unknown".to_owned()
        };
        let message = match self.status {
            400 => "the server rejected our request for an unknown reason",
            401 => "the server has asked for the client to provide credentials",
            404 => "the server could not find the requested resource",
            405 => "the server does not allow this method on the requested resource",
            406 if text == "unknown" || text.is_empty() => {
                "the server was unable to respond with a content type that the client supports"
            }
            403 | 406 | 410 | 415 => return text,
            409 => "the server reported a conflict",
            422 => "the server rejected our request due to an error in our request",
            429 => "the server has received too many requests and has asked us to try again later",
            503 => "the server is currently unable to handle the request",
            504 => {
                "the server was unable to return a response in the time allotted, but may still be processing the \
                 request"
            }
            500.. => {
                return format!(
                    "an error on the server ({}) has prevented the request from succeeding",
                    kubewright_apimachinery::field::quote(&text)
                );
            }
            code => {
                return format!(
                    "the server responded with the status code {code} but did not return more information"
                );
            }
        };
        message.to_owned()
    }
}
