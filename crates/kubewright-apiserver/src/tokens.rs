//! Bearer tokens: given ones, and those that the server signs for service accounts.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use crate::auth::User;
use crate::ids::Ids;

/// Tokens, whom they stand for, and until when.
type Given = BTreeMap<String, (User, Option<i64>)>;

/// Tokens and whom they stand for.
pub(crate) struct Tokens {
    given: Arc<RwLock<Given>>,
    /// Part of every token that is handed out, so that those of another server mean nothing here.
    server: String,
}

impl Tokens {
    pub(crate) fn new(ids: &Ids) -> Self {
        Self { given: Arc::default(), server: ids.uid() }
    }

    /// A copy that goes its own way.
    pub(crate) fn fork(&self, ids: &Ids) -> Self {
        let given = self.given.read().unwrap_or_else(PoisonError::into_inner).clone();
        Self { given: Arc::new(RwLock::new(given)), server: ids.uid() }
    }

    pub(crate) fn add(&self, token: String, user: User) {
        self.write().insert(token, (user, None));
    }

    /// A new token that stands for `user` until a time in seconds since 1970.
    pub(crate) fn issue(&self, ids: &Ids, mut user: User, expires: i64) -> String {
        let token = format!("{}.{}", self.server, ids.uid());
        // Reviews tell a token by this; it must not tell the token.
        let credential = "authentication.kubernetes.io/credential-id".to_owned();
        user.extra.insert(credential, vec![format!("JTI={}", ids.uid())]);
        self.write().insert(token.clone(), (user, Some(expires)));
        token
    }

    pub(crate) fn user(&self, token: &str, now: i64) -> Option<User> {
        let given = self.given.read().unwrap_or_else(PoisonError::into_inner);
        let (user, expires) = given.get(token)?;
        expires.is_none_or(|expires| now < expires).then(|| user.clone())
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, Given> {
        self.given.write().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_ends_when_it_expires() {
        let ids = Ids::new(Some(1));
        let tokens = Tokens::new(&ids);
        let token = tokens.issue(&ids, User::admin(), 100);
        assert_eq!(tokens.user(&token, 99).unwrap().name, "admin");
        assert_eq!(tokens.user(&token, 100), None);
        assert_eq!(tokens.user("bogus", 0), None);
    }
}
