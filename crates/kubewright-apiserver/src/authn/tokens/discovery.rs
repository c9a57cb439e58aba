//! OpenID Connect discovery, for external verification of service account tokens.

use http::{HeaderValue, Response, StatusCode, header};
use kubewright_apimachinery::json;
use kubewright_apimachinery::status::ApiError;
use serde_json::{Value, json};

use super::keys::PublicKey;
use crate::authn::Authn;
use crate::encoding::body::Body;
use crate::encoding::response;

/// Both documents may be cached for an hour, as upstream.
const CACHE_CONTROL: HeaderValue = HeaderValue::from_static("public, max-age=3600");

impl Authn {
    /// `/.well-known/openid-configuration`.
    pub(crate) fn openid_configuration(&self) -> Result<Response<Body>, ApiError> {
        let keys = self.token_keys()?;
        let mut algorithms: Vec<_> = keys.iter().map(|key| key.algorithm).collect();
        algorithms.sort_unstable();
        algorithms.dedup();
        let issuer = &self.tokens.issuers()[0];
        // The server's own address, which may differ from the issuer.
        let address = self.tokens.address().unwrap_or_else(|| issuer.trim_end_matches('/').to_owned());
        let document = json!({
            "issuer": issuer,
            "jwks_uri": format!("{address}/openid/v1/jwks"),
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported":
                algorithms.iter().map(|algorithm| algorithm.name()).collect::<Vec<_>>(),
        });
        Ok(cacheable("application/json", &document))
    }

    /// `/openid/v1/jwks`.
    pub(crate) fn json_web_keys(&self) -> Result<Response<Body>, ApiError> {
        let keys: Vec<Value> = self.token_keys()?.into_iter().map(|key| key.jwk).collect();
        Ok(cacheable("application/jwk-set+json", &json!({"keys": keys})))
    }

    fn token_keys(&self) -> Result<Vec<PublicKey>, ApiError> {
        self.tokens.public_keys().map_err(|error| ApiError::internal(error.to_string()))
    }
}

fn cacheable(media: &'static str, document: &Value) -> Response<Body> {
    let mut response = response::respond(StatusCode::OK, media, json::to_vec(document));
    response.headers_mut().insert(header::CACHE_CONTROL, CACHE_CONTROL);
    response
}
