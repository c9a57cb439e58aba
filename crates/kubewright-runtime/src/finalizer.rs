//! Finalizers: cleaning up before an object is gone.
//!
//! An object with a finalizer is not deleted but marked, until the finalizer is removed. [`run`] is the whole flow:
//! the finalizer is there before anything is done that must be cleaned up, and goes only when that was cleaned up.
//! [`ensure`] and [`release`] are its two ends, for cleanups that take several reconciles.
//!
//! Writes touch nothing but the one finalizer, and nothing at all if the object, or the finalizers of others, are not
//! what they were when they were read.

use std::borrow::Cow;

use serde_json::{Value, json};

use crate::client::{self, Client, Patch, Writable};
use crate::reconcile;

/// How often a finalizer is written at most while others change the list.
const TRIES: u32 = 5;

/// What there is to do for an object.
#[derive(Debug)]
pub enum Event<'a, K> {
    /// The object has the finalizer and is not being deleted: reconcile it.
    Apply(&'a K),
    /// The object is being deleted: clean up. The finalizer is removed when that succeeds.
    Cleanup(&'a K),
}

impl<'a, K> Event<'a, K> {
    /// The object.
    pub fn object(&self) -> &'a K {
        match self {
            Self::Apply(object) | Self::Cleanup(object) => object,
        }
    }
}

/// Why a finalizer could not be kept.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The server would refuse the name.
    #[error(
        "{0:?} is no name of a finalizer: write a domain, a slash and a name, such as example.com/cleanup"
    )]
    Name(String),
    /// It could not be added; nothing was applied.
    #[error("the finalizer {name} cannot be added")]
    Add {
        /// The finalizer.
        name: String,
        /// What the API server said.
        #[source]
        source: client::Error,
    },
    /// It could not be removed, though everything is cleaned up; the cleanup will run again.
    #[error("the finalizer {name} cannot be removed")]
    Remove {
        /// The finalizer.
        name: String,
        /// What the API server said.
        #[source]
        source: client::Error,
    },
}

/// Whether an object has a finalizer.
pub fn contains<K: Writable>(object: &K, name: &str) -> bool {
    finalizers(object).iter().any(|finalizer| finalizer == name)
}

/// Adds a finalizer to an object that is yet to be written. Says whether it was missing.
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kubewright_runtime::finalizer;
///
/// let mut object = ConfigMap::default();
/// assert!(finalizer::add(&mut object, "example.com/cleanup"));
/// assert!(!finalizer::add(&mut object, "example.com/cleanup"));
/// assert!(finalizer::contains(&object, "example.com/cleanup"));
/// assert!(finalizer::remove(&mut object, "example.com/cleanup"));
/// ```
pub fn add<K: Writable>(object: &mut K, name: &str) -> bool {
    let missing = !contains(object, name);
    if missing {
        object.metadata_mut().finalizers.get_or_insert_default().push(name.to_owned());
    }
    missing
}

/// Removes a finalizer from an object that is yet to be written. Says whether it was there.
pub fn remove<K: Writable>(object: &mut K, name: &str) -> bool {
    let there = contains(object, name);
    let finalizers = &mut object.metadata_mut().finalizers;
    if let Some(list) = finalizers {
        list.retain(|finalizer| finalizer != name);
        if list.is_empty() {
            *finalizers = None;
        }
    }
    there
}

/// Reconciles an object that must be cleaned up before it goes.
///
/// - The object has no finalizer `name` yet: it is added, and then `reconcile` gets [`Event::Apply`] with the object
///   as the server stored it, in the same call. That is safe, since the finalizer is stored before anything is
///   applied, and needed, since the new finalizer does not change the generation: a controller that looks at
///   generations would not be called again for it.
/// - It has the finalizer: [`Event::Apply`].
/// - It is being deleted: [`Event::Cleanup`]. Once that succeeds, the finalizer is removed, and the object may go.
///   If it fails, the finalizer stays, and the error makes the controller try again. It may run more than once.
/// - It is being deleted without the finalizer, or is gone: nothing, and the default of `T`.
///
/// Errors of `reconcile` come back as they are; those of the finalizer itself as [`Error`].
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kubewright_runtime::finalizer::{self, Event};
/// use kubewright_runtime::{Context, Outcome, Result};
///
/// # async fn create_bucket(_: &ConfigMap) -> Result<()> { Ok(()) }
/// # async fn delete_bucket(_: &ConfigMap) -> Result<()> { Ok(()) }
/// async fn reconcile(object: &ConfigMap, cx: &Context) -> Result<Outcome> {
///     finalizer::run(cx.client(), object, "example.com/bucket", async |event| {
///         match event {
///             Event::Apply(object) => create_bucket(object).await?,
///             Event::Cleanup(object) => delete_bucket(object).await?,
///         }
///         Ok(Outcome::done())
///     })
///     .await
/// }
/// ```
pub async fn run<K: Writable, T: Default>(
    client: &Client,
    object: &K,
    name: &str,
    reconcile: impl AsyncFnOnce(Event<'_, K>) -> reconcile::Result<T>,
) -> reconcile::Result<T> {
    checked(name)?;
    if !is_deleting(object) {
        return match ensure(client, object, name).await? {
            Some(object) => reconcile(Event::Apply(&object)).await,
            None => Ok(T::default()),
        };
    }
    if !contains(object, name) {
        return Ok(T::default());
    }
    let done = reconcile(Event::Cleanup(object)).await?;
    release(client, object, name).await?;
    Ok(done)
}

/// Makes sure that an object has a finalizer, and returns the object with it; none if it is being deleted or gone.
///
/// What the object has already is not sent. If others changed its finalizers meanwhile, it is read again.
pub async fn ensure<'a, K: Writable>(
    client: &Client,
    object: &'a K,
    name: &str,
) -> Result<Option<Cow<'a, K>>, Error> {
    checked(name)?;
    let failed = |source| Error::Add { name: name.to_owned(), source };
    let mut object = Cow::Borrowed(object);
    for tried in 1.. {
        if is_deleting(&*object) {
            return Ok(None);
        }
        if contains(&*object, name) {
            return Ok(Some(object));
        }
        match write(client, &*object, adding(&*object, name)).await {
            Ok(updated) => return Ok(Some(Cow::Owned(updated))),
            Err(error) => match again(client, &*object, error, tried).await.map_err(failed)? {
                Some(now) => object = Cow::Owned(now),
                None => return Ok(None),
            },
        }
    }
    unreachable!("the last attempt returns")
}

/// Removes a finalizer from an object, unless it has none or is gone.
///
/// If others changed its finalizers meanwhile, the object is read again.
pub async fn release<K: Writable>(client: &Client, object: &K, name: &str) -> Result<(), Error> {
    let failed = |source| Error::Remove { name: name.to_owned(), source };
    let mut object = Cow::Borrowed(object);
    for tried in 1.. {
        if !contains(&*object, name) {
            return Ok(());
        }
        match write(client, &*object, removing(&*object, name)).await {
            Ok(_) => return Ok(()),
            Err(error) => match again(client, &*object, error, tried).await.map_err(failed)? {
                Some(now) => object = Cow::Owned(now),
                None => return Ok(()),
            },
        }
    }
    unreachable!("the last attempt returns")
}

async fn write<K: Writable>(client: &Client, object: &K, operations: Value) -> Result<K, client::Error> {
    client.patch(object, &Patch::json(operations)).await
}

/// The object as it is now, if that explains why it could not be written; none if it is gone.
async fn again<K: Writable>(
    client: &Client,
    before: &K,
    error: client::Error,
    tried: u32,
) -> Result<Option<K>, client::Error> {
    if error.is_not_found() {
        return Ok(None);
    }
    // A test that fails is answered as an invalid request, and so is much else.
    if !(error.is_invalid() || error.is_conflict()) || tried >= TRIES {
        return Err(error);
    }
    let Some(now) = client.fresh(before).await? else { return Ok(None) };
    if now.metadata().uid != before.metadata().uid {
        // A namesake: it has an event of its own.
        return Ok(None);
    }
    let known = error.is_invalid()
        && finalizers(&now) == finalizers(before)
        && is_deleting(&now) == is_deleting(before);
    if known { Err(error) } else { Ok(Some(now)) }
}

/// Adds a finalizer to the list as it was read.
fn adding<K: Writable>(object: &K, name: &str) -> Value {
    let there = finalizers(object);
    // A list that is not there tests as null, and cannot be appended to.
    let (list, add) = if there.is_empty() {
        (Value::Null, json!({"op": "add", "path": "/metadata/finalizers", "value": [name]}))
    } else {
        (json!(there), json!({"op": "add", "path": "/metadata/finalizers/-", "value": name}))
    };
    json!([same(object), {"op": "test", "path": "/metadata/finalizers", "value": list}, add])
}

/// Removes a finalizer from where it was read, each time that it is there.
fn removing<K: Writable>(object: &K, name: &str) -> Value {
    let mut operations = vec![same(object)];
    // From the end, so that the places before do not move.
    for (at, finalizer) in finalizers(object).iter().enumerate().rev() {
        if finalizer == name {
            let path = format!("/metadata/finalizers/{at}");
            operations.push(json!({"op": "test", "path": path, "value": name}));
            operations.push(json!({"op": "remove", "path": path}));
        }
    }
    Value::Array(operations)
}

/// The object is the one that was read, and no namesake.
fn same<K: Writable>(object: &K) -> Value {
    json!({"op": "test", "path": "/metadata/uid", "value": object.metadata().uid})
}

fn finalizers<K: Writable>(object: &K) -> &[String] {
    object.metadata().finalizers.as_deref().unwrap_or_default()
}

fn is_deleting<K: Writable>(object: &K) -> bool {
    object.metadata().deletion_timestamp.is_some()
}

/// As the server checks names: a subdomain, a slash, and up to 63 letters.
fn checked(name: &str) -> Result<(), Error> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let ends = |part: &str, is: &dyn Fn(u8) -> bool| {
        part.bytes().next().is_some_and(is) && part.bytes().next_back().is_some_and(is)
    };
    let label = |part: &str| ends(part, &plain) && part.bytes().all(|byte| plain(byte) || byte == b'-');
    let letter = |byte: u8| byte.is_ascii_alphanumeric();
    let word = |part: &str| {
        part.len() <= 63
            && ends(part, &letter)
            && part.bytes().all(|byte| letter(byte) || b"-_.".contains(&byte))
    };
    let good = name
        .split_once('/')
        .is_some_and(|(domain, rest)| domain.len() <= 253 && domain.split('.').all(label) && word(rest));
    if good { Ok(()) } else { Err(Error::Name(name.to_owned())) }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;

    fn object(finalizers: &[&str]) -> ConfigMap {
        let finalizers = finalizers.iter().map(|&it| it.to_owned()).collect();
        let mut object = ConfigMap::default();
        object.metadata.uid = Some("u".to_owned());
        object.metadata.finalizers = Some(finalizers).filter(|list: &Vec<String>| !list.is_empty());
        object
    }

    #[test]
    fn names_are_checked_as_the_server_does() {
        for good in ["example.com/cleanup", "a/B_c.d-e", "my-domain.example/x"] {
            assert!(checked(good).is_ok(), "{good} was refused");
        }
        let long = format!("example.com/{}", "x".repeat(64));
        for wrong in [
            "",
            "cleanup",
            "/x",
            "example.com/",
            "Example.com/x",
            "a..b/x",
            "-a/x",
            "a/x/y",
            "a/-x",
            "a/x y",
            &long,
        ] {
            let error = checked(wrong).unwrap_err();
            assert!(error.to_string().contains("such as example.com/cleanup"), "{error}");
        }
    }

    #[test]
    fn a_list_that_is_empty_is_no_list() {
        let mut map = object(&["a/x"]);
        assert!(remove(&mut map, "a/x") && !remove(&mut map, "a/x"));
        assert_eq!(map.metadata.finalizers, None);
        assert!(add(&mut map, "a/x") && contains(&map, "a/x") && !contains(&map, "a"));
    }

    #[test]
    fn writes_test_what_was_read() {
        let uid = json!({"op": "test", "path": "/metadata/uid", "value": "u"});
        let list = "/metadata/finalizers";
        assert_eq!(
            adding(&object(&[]), "a/x"),
            json!([
                uid,
                {"op": "test", "path": list, "value": null},
                {"op": "add", "path": list, "value": ["a/x"]},
            ])
        );
        assert_eq!(
            adding(&object(&["b/y"]), "a/x"),
            json!([
                uid,
                {"op": "test", "path": list, "value": ["b/y"]},
                {"op": "add", "path": "/metadata/finalizers/-", "value": "a/x"},
            ])
        );
        assert_eq!(
            removing(&object(&["a/x", "b/y", "a/x"]), "a/x"),
            json!([
                uid,
                {"op": "test", "path": "/metadata/finalizers/2", "value": "a/x"},
                {"op": "remove", "path": "/metadata/finalizers/2"},
                {"op": "test", "path": "/metadata/finalizers/0", "value": "a/x"},
                {"op": "remove", "path": "/metadata/finalizers/0"},
            ])
        );
    }
}
