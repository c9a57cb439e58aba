//! Formats: content negotiation, request bodies, and responses as JSON, YAML, protobuf and Tables.

pub(crate) mod body;
pub(crate) mod negotiate;
pub(crate) mod request_body;
pub(crate) mod response;
pub(crate) mod row;
pub(crate) mod yaml_list;
