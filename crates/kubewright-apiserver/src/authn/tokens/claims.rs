//! The claims of service account tokens: building them, and validating them on use.

use std::sync::Arc;

use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::time;
use serde_json::{Value, json};

use crate::authn::{Authn, User};
use crate::storage::StoredObject;

/// The issuer of legacy tokens in Secrets.
pub(super) const LEGACY_ISSUER: &str = "kubernetes/serviceaccount";

/// Accepted clock skew in seconds, as in kube-apiserver.
const LEEWAY: i64 = 60;

const INVALIDATED: &str = "service account token has been invalidated";

/// A name and UID in a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reference {
    pub(crate) name: String,
    /// Empty for a Node that does not exist.
    pub(crate) uid: String,
}

impl Reference {
    pub(crate) fn to(version: &StoredObject) -> Self {
        let (_, name) = version.namespace_and_name();
        Self { name: name.to_owned(), uid: version.attributes.uid().to_owned() }
    }

    fn read(value: &Value) -> Option<Self> {
        value
            .is_object()
            .then(|| Self { name: value.str_at("name").to_owned(), uid: value.str_at("uid").to_owned() })
    }

    fn to_value(&self) -> Value {
        match &*self.uid {
            "" => json!({"name": self.name}),
            uid => json!({"name": self.name, "uid": uid}),
        }
    }
}

/// The claims of a new token.
#[derive(Debug)]
pub(crate) struct Claims<'a> {
    pub(crate) id: String,
    pub(crate) namespace: &'a str,
    pub(crate) account: Reference,
    pub(crate) pod: Option<Reference>,
    pub(crate) secret: Option<Reference>,
    pub(crate) node: Option<Reference>,
    pub(crate) audiences: &'a [Value],
    pub(crate) issued: i64,
    pub(crate) expires: i64,
    /// The time from which use of the token is reported, long before it expires.
    pub(crate) warn_after: Option<i64>,
}

impl Claims<'_> {
    pub(super) fn to_value(&self, issuer: &str) -> Value {
        let mut private = json!({"namespace": self.namespace, "serviceaccount": self.account.to_value()});
        for (name, bound) in [("pod", &self.pod), ("secret", &self.secret), ("node", &self.node)] {
            if let Some(bound) = bound {
                private[name] = bound.to_value();
            }
        }
        if let Some(warn_after) = self.warn_after {
            private["warnafter"] = warn_after.into();
        }
        json!({
            "iss": issuer,
            "sub": user_name(self.namespace, &self.account.name),
            "aud": self.audiences,
            "jti": self.id,
            "iat": self.issued,
            "nbf": self.issued,
            "exp": self.expires,
            "kubernetes.io": private,
        })
    }
}

fn user_name(namespace: &str, name: &str) -> String {
    format!("system:serviceaccount:{namespace}:{name}")
}

/// The user of a service account.
fn account_user(namespace: &str, account: &Reference) -> User {
    let groups = ["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")];
    let mut user = User::authenticated(user_name(namespace, &account.name), groups);
    user.uid.clone_from(&account.uid);
    user
}

impl Authn {
    /// The user of a token whose signature and audience are verified, or the reason why it is no longer
    /// valid.
    pub(super) fn validate_claims(&self, token: &str, claims: &Value) -> Result<User, String> {
        if claims.str_at("iss") == LEGACY_ISSUER {
            return self.validate_legacy_claims(token, claims);
        }
        let now = self.clock.now();
        let seconds = |name: &str| claims[name].as_i64();
        if seconds("nbf").is_some_and(|from| now + LEEWAY < from) {
            return Err("service account token is not valid yet".to_owned());
        }
        if seconds("exp").is_some_and(|end| now - LEEWAY > end) {
            return Err("service account token has expired".to_owned());
        }
        if seconds("iat").is_some_and(|issued| now + LEEWAY < issued) {
            return Err("service account token is issued in the future".to_owned());
        }
        let private = &claims["kubernetes.io"];
        let namespace = private.str_at("namespace");
        let reference = |name: &str| Reference::read(&private[name]);
        let account =
            reference("serviceaccount").unwrap_or(Reference { name: String::new(), uid: String::new() });
        let found = self
            .referenced("serviceaccounts", namespace, &account.name)
            .ok_or_else(|| format!("serviceaccounts {:?} not found", account.name))?;
        if found.attributes.uid() != account.uid {
            let uid = found.attributes.uid();
            return Err(format!("service account UID ({uid}) does not match claim ({})", account.uid));
        }
        if was_deleted(&found, now) {
            return Err(format!("service account {namespace}/{} has been deleted", account.name));
        }
        let mut user = account_user(namespace, &account);
        let mut extra = |key: &str, value: &str| {
            user.extra.insert(format!("authentication.kubernetes.io/{key}"), vec![value.to_owned()]);
        };
        match claims.str_at("jti") {
            "" => {}
            id => extra("credential-id", &format!("JTI={id}")),
        }
        if let Some(secret) = reference("secret") {
            self.check_bound("secret", namespace, &secret, now)?;
        }
        let pod = reference("pod");
        if let Some(pod) = &pod {
            self.check_bound("pod", namespace, pod, now)?;
            extra("pod-name", &pod.name);
            extra("pod-uid", &pod.uid);
        }
        if let Some(node) = reference("node") {
            // The Node of a Pod is informational and not checked.
            if pod.is_none() {
                self.check_bound("node", "", &node, now)?;
            }
            extra("node-name", &node.name);
            if !node.uid.is_empty() {
                extra("node-uid", &node.uid);
            }
        }
        Ok(user)
    }

    /// Checks that the bound object exists with the same UID.
    fn check_bound(&self, kind: &str, namespace: &str, bound: &Reference, now: i64) -> Result<(), String> {
        let found = self.referenced(&format!("{kind}s"), namespace, &bound.name).ok_or(INVALIDATED)?;
        if found.attributes.uid() != bound.uid {
            return Err(format!(
                "{kind} UID ({}) does not match service account {kind} ref claim ({})",
                found.attributes.uid(),
                bound.uid
            ));
        }
        if was_deleted(&found, now) { Err(INVALIDATED.to_owned()) } else { Ok(()) }
    }

    /// As [`Authn::validate_claims`], for a legacy token in a Secret.
    fn validate_legacy_claims(&self, token: &str, claims: &Value) -> Result<User, String> {
        let claim = |name: &str, missing: &str| {
            let key = format!("kubernetes.io/serviceaccount/{name}");
            match claims[&key].as_str().unwrap_or_default() {
                "" => Err(format!("{missing} claim is missing")),
                value => Ok(value.to_owned()),
            }
        };
        if claims.str_at("sub").is_empty() {
            return Err("sub claim is missing".to_owned());
        }
        let namespace = claim("namespace", "namespace")?;
        let secret_name = claim("secret.name", "secretName")?;
        let name = claim("service-account.name", "serviceAccountName")?;
        let uid = claim("service-account.uid", "serviceAccountUID")?;
        if claims.str_at("sub") != user_name(&namespace, &name) {
            return Err("sub claim is invalid".to_owned());
        }
        let secret = self
            .referenced("secrets", &namespace, &secret_name)
            .filter(|secret| !secret.attributes.is_deleting())
            .ok_or("Token has been invalidated")?
            .object();
        if super::decoded(secret.at("data.token")) != token.as_bytes() {
            return Err("Token does not match server's copy".to_owned());
        }
        let account = self
            .referenced("serviceaccounts", &namespace, &name)
            .ok_or_else(|| format!("serviceaccounts {name:?} not found"))?;
        if account.attributes.is_deleting() {
            return Err(format!("ServiceAccount {namespace}/{name} has been deleted"));
        }
        if account.attributes.uid() != uid {
            let found = account.attributes.uid();
            return Err(format!("ServiceAccount UID ({found}) does not match claim ({uid})"));
        }
        let invalid = "kubernetes.io/legacy-token-invalid-since";
        if secret.map_at("metadata.labels").get(invalid).is_some_and(|since| since != "") {
            return Err(format!(
                "the token in secret {namespace}/{secret_name} for service account {namespace}/{name} has been marked \
                 invalid. Use tokens from the TokenRequest API or manually created secret-based tokens, or remove the \
                 '{invalid}' label from the secret to temporarily allow use of this token"
            ));
        }
        Ok(account_user(&namespace, &Reference { name, uid }))
    }

    fn referenced(&self, storage: &str, namespace: &str, name: &str) -> Option<Arc<StoredObject>> {
        let key = if namespace.is_empty() { name.to_owned() } else { [namespace, "/", name].concat() };
        self.store.get(storage, &key)
    }
}

/// Whether the object was deleted longer ago than the accepted clock skew.
fn was_deleted(version: &StoredObject, now: i64) -> bool {
    version.attributes.is_deleting()
        && time::parse_rfc3339(version.object().str_at("metadata.deletionTimestamp"))
            .is_some_and(|deleted| deleted < now - LEEWAY)
}
