//! Warnings about Secrets.

use serde_json::Value;

use kubewright_apimachinery::meta::bytes;
use kubewright_apimachinery::object::Fields as _;

/// Go's error for a pair of certificate and key. Checks only the PEM blocks, not their content.
pub(super) fn key_pair(secret: &Value) -> Option<String> {
    if secret.str_at("type") != "kubernetes.io/tls" {
        return None;
    }
    let data = secret.map_at("data");
    let field = |key: &str| bytes::decode(data.get(key).and_then(Value::as_str).unwrap_or_default());
    let certificates = bytes::pem_labels(&field("tls.crt"));
    if !certificates.iter().any(|label| label == "CERTIFICATE") {
        return Some(match certificates.as_slice() {
            [] => "tls: failed to find any PEM data in certificate input".to_owned(),
            [label] if label.ends_with("PRIVATE KEY") => {
                "tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs \
                 may have been switched"
                    .to_owned()
            }
            labels => format!(
                "tls: failed to find \"CERTIFICATE\" PEM block in certificate input after skipping PEM blocks of the \
                 following types: [{}]",
                labels.join(" ")
            ),
        });
    }
    let keys = bytes::pem_labels(&field("tls.key"));
    if keys.iter().any(|label| label == "PRIVATE KEY" || label.ends_with(" PRIVATE KEY")) {
        return None;
    }
    Some(match keys.as_slice() {
        [] => "tls: failed to find any PEM data in key input".to_owned(),
        [label] if label == "CERTIFICATE" => {
            "tls: found a certificate rather than a key in the PEM for the private key".to_owned()
        }
        labels => format!(
            "tls: failed to find PEM block with type ending in \"PRIVATE KEY\" in key input after skipping PEM blocks \
             of the following types: [{}]",
            labels.join(" ")
        ),
    })
}
