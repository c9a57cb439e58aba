//! JSON Web Tokens in compact form. Owns the encoding, not the meaning of claims.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::keys::{KeyError, PublicKey, SigningKey};

/// Signs claims.
pub(super) fn sign(key: &SigningKey, claims: &Value) -> Result<String, KeyError> {
    let header = json!({"alg": key.public().algorithm.name(), "kid": key.public().id});
    let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let mut token = format!("{}.{}", encode(&header), encode(claims));
    let signature = key.sign(token.as_bytes())?;
    token.push('.');
    token.push_str(&URL_SAFE_NO_PAD.encode(signature));
    Ok(token)
}

/// A token whose signature has not been verified.
pub(super) struct Unverified<'a> {
    header: Value,
    claims: Value,
    signed: &'a str,
    signature: Vec<u8>,
}

impl<'a> Unverified<'a> {
    /// Parses a token.
    pub(super) fn read(token: &'a str) -> Option<Self> {
        let (signed, signature) = token.rsplit_once('.')?;
        let (header, claims) = signed.split_once('.')?;
        let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).ok();
        let parse = |part: &str| serde_json::from_slice(&decode(part)?).ok().filter(Value::is_object);
        Some(Self { header: parse(header)?, claims: parse(claims)?, signed, signature: decode(signature)? })
    }

    /// The issuer in the claims.
    pub(super) fn issuer(&self) -> &str {
        self.claims["iss"].as_str().unwrap_or_default()
    }

    /// The keys that may have signed the token: the one with its key ID, or all.
    pub(super) fn candidates<'k>(&self, keys: &'k [PublicKey]) -> impl Iterator<Item = &'k PublicKey> {
        let id = self.header["kid"].as_str().unwrap_or_default().to_owned();
        keys.iter().filter(move |key| id.is_empty() || key.id == id)
    }

    /// The claims, if this key signed them.
    pub(super) fn verified_by(&self, key: &PublicKey) -> Option<&Value> {
        (self.header["alg"] == key.algorithm.name() && key.verifies(self.signed.as_bytes(), &self.signature))
            .then_some(&self.claims)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_modified_token_is_not_verified() {
        let key = SigningKey::generate().unwrap();
        let token = sign(&key, &json!({"iss": "me", "sub": "a"})).unwrap();
        let read = Unverified::read(&token).unwrap();
        assert_eq!(read.issuer(), "me");
        assert_eq!(read.verified_by(key.public()).unwrap()["sub"], "a");

        let other = URL_SAFE_NO_PAD.encode("{\"iss\":\"me\",\"sub\":\"b\"}");
        let parts: Vec<&str> = token.split('.').collect();
        let forged = [parts[0], &other, parts[2]].join(".");
        assert!(Unverified::read(&forged).unwrap().verified_by(key.public()).is_none());
        let unsigned = URL_SAFE_NO_PAD.encode("{\"alg\":\"none\"}");
        let forged = [&unsigned, parts[1], ""].join(".");
        assert!(Unverified::read(&forged).unwrap().verified_by(key.public()).is_none());
        for text in ["", "a", "a.b", "a.b.c", "a.b.c.d", "{}", ".."] {
            assert!(Unverified::read(text).is_none(), "{text}");
        }
    }
}
