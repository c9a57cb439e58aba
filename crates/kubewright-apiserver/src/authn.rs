//! Authentication of requests.
//!
//! The listener attaches the authenticated [`User`] as a request extension: over TLS it comes from the client
//! certificate or the bearer token. An in-process request without one runs as the administrator. Impersonation
//! headers replace the user if RBAC allows it.

mod impersonation;
pub mod tokens;

use std::collections::BTreeMap;
use std::sync::Arc;

use kubewright_apimachinery::status::ApiError;

use crate::authz::Authz;
use crate::clock::Clock;
use crate::storage::Store;
use impersonation::Modes;
use tokens::{Bearer, Tokens};

/// The group whose members are allowed everything.
pub const MASTERS: &str = "system:masters";
pub(crate) const AUTHENTICATED: &str = "system:authenticated";
pub(crate) const UNAUTHENTICATED: &str = "system:unauthenticated";
pub(crate) const ANONYMOUS: &str = "system:anonymous";

/// The user that sent a request. Put one into a request's extensions to act as that user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// User name.
    pub name: String,
    /// UID; may be empty.
    pub uid: String,
    /// Groups.
    pub groups: Vec<String>,
    /// Additional attributes.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// A user in the group `system:authenticated`.
    pub fn authenticated(name: impl Into<String>, groups: impl IntoIterator<Item = String>) -> Self {
        let mut groups: Vec<String> = groups.into_iter().collect();
        if !groups.iter().any(|group| group == AUTHENTICATED) {
            groups.push(AUTHENTICATED.to_owned());
        }
        Self { name: name.into(), uid: String::new(), groups, extra: BTreeMap::new() }
    }

    /// The administrator, a member of [`MASTERS`].
    pub fn admin() -> Self {
        Self::authenticated("admin", [MASTERS.to_owned()])
    }

    /// The user of requests without credentials.
    pub fn anonymous() -> Self {
        Self {
            name: ANONYMOUS.to_owned(),
            uid: String::new(),
            groups: vec![UNAUTHENTICATED.to_owned()],
            extra: BTreeMap::new(),
        }
    }

    /// Whether the user is a member of `group`.
    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|own| own == group)
    }
}

/// The authenticator of a server.
pub(crate) struct Authn {
    pub(crate) tokens: Tokens,
    modes: Modes,
    authz: Arc<Authz>,
    store: Arc<Store>,
    clock: Arc<dyn Clock>,
}

impl Authn {
    /// Impersonation is authorized by `authz`; bound objects of tokens are read from `store`.
    pub(crate) fn new(tokens: Tokens, authz: Arc<Authz>, store: Arc<Store>, clock: Arc<dyn Clock>) -> Self {
        Self { tokens, modes: Modes::default(), authz, store, clock }
    }

    /// Authenticates a request. Only an in-process request without credentials runs as the administrator.
    pub(crate) fn authenticate(
        &self,
        parts: &http::request::Parts,
        bearer: Option<&Bearer<'_>>,
    ) -> Result<User, ApiError> {
        let carried = parts.extensions.get::<User>().cloned();
        let user = match bearer {
            None => carried.unwrap_or_else(User::admin),
            Some(Bearer::Token(token)) => {
                let audiences = self.tokens.api_audiences();
                self.authenticate_token(token, &audiences).map_err(|_| unauthorized())?.user
            }
            Some(Bearer::Absent | Bearer::ExtraSpace) => carried.unwrap_or_else(User::anonymous),
        };
        if self.authz.admits(&user) { Ok(user) } else { Err(unauthorized()) }
    }
}

/// The 401 error.
pub(crate) fn unauthorized() -> ApiError {
    ApiError::new(401, "Unauthorized", "Unauthorized")
}
