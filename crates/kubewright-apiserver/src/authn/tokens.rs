//! Bearer tokens: static ones, and the JSON Web Tokens that the server signs for service accounts.
//!
//! Signed tokens are not stored. Every request verifies the signature, and checks the claims against the
//! objects in the store, so a token becomes invalid with its service account and with the object that it is
//! bound to.

mod claims;
mod discovery;
mod jwt;
pub(crate) mod keys;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kubewright_apimachinery::field::quote;
use serde_json::Value;

pub(crate) use claims::{Claims, Reference};
pub use keys::{KeyError, PublicKey, SigningKey};

use crate::authn::{Authn, User};

/// The issuer of a server that does not listen; also kubeadm's default.
const IN_CLUSTER: &str = "https://kubernetes.default.svc";

/// Number of previous issuers that are accepted: with port 0, the URL changes on each restart.
const FORMER_ISSUERS: usize = 8;

/// Options for service account tokens, as kube-apiserver's flags.
#[derive(Debug, Clone, Default)]
pub struct TokenOptions {
    /// `--service-account-issuer`: the first one signs, all are accepted. Defaults to the server's URL.
    pub issuers: Vec<String>,
    /// `--api-audiences`. Defaults to the issuers.
    pub audiences: Vec<String>,
    /// `--service-account-signing-key-file`. Defaults to a generated key.
    pub signing_key: Option<Arc<SigningKey>>,
    /// `--service-account-key-file`: keys that verify tokens, besides the signing key.
    pub verification_keys: Vec<PublicKey>,
}

/// Why a token does not authenticate, in kube-apiserver's wording.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum TokenError {
    /// Not a token of this server.
    #[error("invalid bearer token")]
    Unknown,
    #[error("go-jose/go-jose: error in cryptographic primitive")]
    Signature,
    #[error("token audiences {} is invalid for the target audiences {}", list(.token), list(.target))]
    Audiences { token: Vec<String>, target: Vec<String> },
    /// The claims are invalid, or no longer match the stored objects.
    #[error("{0}")]
    Claims(String),
}

/// Formats strings as Go's `%q` does.
fn list(items: &[String]) -> String {
    format!("[{}]", items.iter().map(|item| quote(item)).collect::<Vec<_>>().join(" "))
}

impl TokenError {
    /// The error in a TokenReview. kube-apiserver tries two authenticators, and the first does not know the
    /// token.
    pub(crate) fn in_review(&self) -> String {
        match self {
            Self::Unknown => self.to_string(),
            _ => format!("[{}, {self}]", Self::Unknown),
        }
    }
}

/// An authenticated token.
#[derive(Debug)]
pub(crate) struct Authenticated {
    pub(crate) user: User,
    /// The requested audiences that the token is for.
    pub(crate) audiences: Vec<String>,
}

/// The content of an Authorization header.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Bearer<'a> {
    /// No bearer token.
    Absent,
    /// A token that kube-apiserver ignores with a warning.
    ExtraSpace,
    Token(&'a str),
}

impl<'a> Bearer<'a> {
    /// The warning about [`Bearer::ExtraSpace`].
    pub(crate) const WARNING: &'static str =
        "the provided Authorization header contains extra space before the bearer token, and is ignored";

    /// Parses a header as kube-apiserver does: text after a second space is ignored.
    pub(crate) fn read(header: &'a str) -> Self {
        let mut parts = header.trim().splitn(3, ' ');
        let scheme = parts.next().unwrap_or_default();
        match (parts.next(), parts.next()) {
            _ if !scheme.eq_ignore_ascii_case("bearer") => Self::Absent,
            (Some(""), Some(_)) => Self::ExtraSpace,
            (Some(token), _) if !token.is_empty() => Self::Token(token),
            _ => Self::Absent,
        }
    }
}

/// The tokens of a server.
pub(crate) struct Tokens {
    given: RwLock<BTreeMap<String, User>>,
    /// Generated on first use, unless it is given.
    signing_key: Arc<OnceLock<Arc<SigningKey>>>,
    verification_keys: Arc<[PublicKey]>,
    issuers: RwLock<Issuers>,
    audiences: Arc<[String]>,
    /// The URL of the listener, without a path.
    address: RwLock<Option<String>>,
}

#[derive(Clone)]
struct Issuers {
    all: Arc<[String]>,
    /// Set by options, so that a listener does not change them.
    fixed: bool,
}

impl Tokens {
    pub(crate) fn new(options: TokenOptions) -> Self {
        let fixed = !options.issuers.is_empty();
        let all = if fixed { options.issuers } else { vec![IN_CLUSTER.to_owned()] };
        let signing_key = OnceLock::new();
        if let Some(key) = options.signing_key {
            signing_key.get_or_init(|| key);
        }
        Self {
            given: RwLock::default(),
            signing_key: Arc::new(signing_key),
            verification_keys: options.verification_keys.into(),
            issuers: RwLock::new(Issuers { all: all.into(), fixed }),
            audiences: options.audiences.into(),
            address: RwLock::default(),
        }
    }

    /// The tokens of a forked server. Its service accounts have the same UIDs, so signed tokens stay valid.
    pub(crate) fn fork(&self) -> Self {
        let read = |given: &RwLock<BTreeMap<String, User>>| {
            given.read().unwrap_or_else(PoisonError::into_inner).clone()
        };
        let issuers = self.issuers.read().unwrap_or_else(PoisonError::into_inner).clone();
        Self {
            given: RwLock::new(read(&self.given)),
            signing_key: self.signing_key.clone(),
            verification_keys: self.verification_keys.clone(),
            issuers: RwLock::new(issuers),
            audiences: self.audiences.clone(),
            address: RwLock::new(self.address()),
        }
    }

    /// Adds a static token.
    pub(crate) fn add(&self, token: String, user: User) {
        self.given.write().unwrap_or_else(PoisonError::into_inner).insert(token, user);
    }

    /// The issuers: the first one signs, all are accepted.
    pub(crate) fn issuers(&self) -> Arc<[String]> {
        self.issuers.read().unwrap_or_else(PoisonError::into_inner).all.clone()
    }

    /// The URL of the listener.
    fn address(&self) -> Option<String> {
        self.address.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sets the URL of the listener, without a path, and makes it the issuer.
    pub(crate) fn listen_at(&self, url: &str) -> Arc<[String]> {
        *self.address.write().unwrap_or_else(PoisonError::into_inner) = Some(url.to_owned());
        self.lead_with(&format!("{url}/"))
    }

    /// Makes `issuer` the signing issuer, unless options set the issuers. Previous ones stay accepted.
    /// Returns all.
    pub(crate) fn lead_with(&self, issuer: &str) -> Arc<[String]> {
        let mut issuers = self.issuers.write().unwrap_or_else(PoisonError::into_inner);
        if !issuers.fixed {
            let former = issuers.all.iter().filter(|known| *known != issuer && *known != IN_CLUSTER);
            let mut all = vec![issuer.to_owned()];
            all.extend(former.take(FORMER_ISSUERS).cloned());
            issuers.all = all.into();
        }
        issuers.all.clone()
    }

    /// The audiences that the server itself accepts.
    pub(crate) fn api_audiences(&self) -> Arc<[String]> {
        if self.audiences.is_empty() { self.issuers() } else { self.audiences.clone() }
    }

    /// The audiences of a token that requests none, without previous issuers.
    pub(crate) fn default_audiences(&self) -> Vec<String> {
        if !self.audiences.is_empty() {
            return self.audiences.to_vec();
        }
        let issuers = self.issuers.read().unwrap_or_else(PoisonError::into_inner);
        if issuers.fixed { issuers.all.to_vec() } else { issuers.all[..1].to_vec() }
    }

    fn signing_key(&self) -> Result<&Arc<SigningKey>, KeyError> {
        if let Some(key) = self.signing_key.get() {
            return Ok(key);
        }
        let key = Arc::new(SigningKey::generate()?);
        Ok(self.signing_key.get_or_init(|| key))
    }

    /// All keys that verify tokens, the signing key first.
    fn public_keys(&self) -> Result<Vec<PublicKey>, KeyError> {
        let signing = self.signing_key()?.public();
        let others = self.verification_keys.iter().filter(|key| key.id != signing.id);
        Ok(std::iter::once(signing).chain(others).cloned().collect())
    }

    /// Signs claims, with the issuer added.
    pub(crate) fn sign(&self, claims: &Claims<'_>) -> Result<String, KeyError> {
        jwt::sign(self.signing_key()?, &claims.to_value(&self.issuers()[0]))
    }

    /// The verified claims of a token that this server signed.
    fn verified(&self, token: &str) -> Result<Value, TokenError> {
        let unverified = jwt::Unverified::read(token).ok_or(TokenError::Unknown)?;
        let issuer = unverified.issuer();
        if issuer != claims::LEGACY_ISSUER && !self.issuers().iter().any(|known| known == issuer) {
            return Err(TokenError::Unknown);
        }
        let keys = self.public_keys().map_err(|_| TokenError::Unknown)?;
        let mut candidates = unverified.candidates(&keys).peekable();
        if candidates.peek().is_none() {
            return Err(TokenError::Unknown);
        }
        candidates.find_map(|key| unverified.verified_by(key)).cloned().ok_or(TokenError::Signature)
    }
}

impl Authn {
    /// Authenticates a bearer token for one of these audiences.
    pub(crate) fn authenticate_token(
        &self,
        token: &str,
        audiences: &[String],
    ) -> Result<Authenticated, TokenError> {
        let given = self.tokens.given.read().unwrap_or_else(PoisonError::into_inner).get(token).cloned();
        let api_audiences = self.tokens.api_audiences();
        if let Some(user) = given {
            // A static token is valid for the server's audiences only.
            let audiences = intersection(&api_audiences, audiences);
            return if audiences.is_empty() {
                Err(TokenError::Unknown)
            } else {
                Ok(Authenticated { user, audiences })
            };
        }
        let claims = self.tokens.verified(token)?;
        let strings = |value: &Value| -> Vec<String> {
            value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let token_audiences = match strings(&claims["aud"]) {
            audiences if audiences.is_empty() => api_audiences.to_vec(),
            audiences => audiences,
        };
        let shared = intersection(&token_audiences, audiences);
        if shared.is_empty() {
            return Err(TokenError::Audiences { token: token_audiences, target: audiences.to_vec() });
        }
        let user = self.validate_claims(token, &claims).map_err(TokenError::Claims)?;
        Ok(Authenticated { user, audiences: shared })
    }
}

/// A decoded value of a Secret.
fn decoded(value: &Value) -> Vec<u8> {
    STANDARD.decode(value.as_str().unwrap_or_default()).unwrap_or_default()
}

/// The requested audiences that are present, in the order of the request.
fn intersection(there: &[String], requested: &[String]) -> Vec<String> {
    requested.iter().filter(|audience| there.contains(audience)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bearer_token_ends_at_the_next_space() {
        for (header, expected) in [
            ("Bearer x", Bearer::Token("x")),
            (" bearer x y ", Bearer::Token("x")),
            ("Bearer  x", Bearer::ExtraSpace),
            ("Bearer", Bearer::Absent),
            ("Bearer ", Bearer::Absent),
            ("Basic x", Bearer::Absent),
            ("x", Bearer::Absent),
            ("", Bearer::Absent),
        ] {
            assert_eq!(Bearer::read(header), expected, "{header:?}");
        }
    }

    #[test]
    fn the_listeners_url_signs_and_previous_issuers_stay_accepted() {
        let tokens = Tokens::new(TokenOptions::default());
        assert_eq!(&*tokens.issuers(), [IN_CLUSTER]);
        tokens.lead_with("https://a/");
        tokens.lead_with("https://b/");
        assert_eq!(&*tokens.issuers(), ["https://b/", "https://a/"]);
        assert_eq!(tokens.default_audiences(), ["https://b/"]);
        for port in 0..100 {
            tokens.lead_with(&format!("https://c:{port}/"));
        }
        assert_eq!(tokens.issuers().len(), FORMER_ISSUERS + 1);
    }

    #[test]
    fn a_listener_does_not_change_configured_issuers() {
        let issuers = vec!["https://one".to_owned(), "https://two".to_owned()];
        let tokens = Tokens::new(TokenOptions { issuers: issuers.clone(), ..TokenOptions::default() });
        tokens.lead_with("https://a/");
        assert_eq!(tokens.issuers().to_vec(), issuers);
        assert_eq!(tokens.default_audiences(), issuers);
    }
}
