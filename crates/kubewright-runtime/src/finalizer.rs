//! Finalizers: cleanup before an object is deleted.
//!
//! The API server keeps a deleted object until its finalizers are removed. [`run`] implements the whole flow: it adds
//! the finalizer before anything is applied, and removes it after the cleanup. [`ensure`] and [`release`] are its two
//! parts, for cleanups that take several reconciles.
//!
//! Writes change only the one finalizer, and fail if the object was recreated or its finalizers changed since it was
//! read.

use std::borrow::Cow;

use serde_json::{Value, json};

use crate::client::{self, Client, Patch, Writable};
use crate::reconcile;

/// The maximum number of writes while other clients change the finalizers.
const TRIES: u32 = 5;

/// The step that an object needs.
#[derive(Debug)]
pub enum Event<'a, K> {
    /// The object has the finalizer and is not being deleted: reconcile it.
    Apply(&'a K),
    /// The object is being deleted: clean up. The finalizer is removed after success.
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

/// Why a finalizer could not be added or removed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The name is invalid.
    #[error(
        "{0:?} is not a valid finalizer name: use a domain, a slash and a name, such as example.com/cleanup"
    )]
    Name(String),
    /// The finalizer could not be added; nothing was applied.
    #[error("failed to add the finalizer {name}")]
    Add {
        /// The finalizer.
        name: String,
        /// The error of the API server.
        #[source]
        source: client::Error,
    },
    /// The finalizer could not be removed after the cleanup; the cleanup will run again.
    #[error("failed to remove the finalizer {name}")]
    Remove {
        /// The finalizer.
        name: String,
        /// The error of the API server.
        #[source]
        source: client::Error,
    },
}

/// Whether an object has a finalizer.
pub fn contains<K: Writable>(object: &K, name: &str) -> bool {
    finalizers(object).iter().any(|finalizer| finalizer == name)
}

/// Adds a finalizer to an object in memory. Returns whether it was missing.
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

/// Removes a finalizer from an object in memory. Returns whether it existed.
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

/// Reconciles an object that needs cleanup before it is deleted.
///
/// - Without the finalizer `name`: adds it, and then calls `reconcile` with [`Event::Apply`] and the stored object, in
///   the same call. That is safe, because the finalizer is stored before anything is applied. It is necessary, because
///   adding a finalizer does not change the generation: a controller with a generation predicate would not run again.
/// - With the finalizer: [`Event::Apply`].
/// - Being deleted: [`Event::Cleanup`]. After success the finalizer is removed. After a failure it stays, and the error
///   makes the controller retry, so the cleanup may run more than once.
/// - Being deleted without the finalizer, or already deleted: does nothing and returns the default of `T`.
///
/// Errors of `reconcile` are returned unchanged; those of the finalizer itself as [`Error`].
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

/// Ensures that an object has a finalizer, and returns the object with it; `None` if it is being deleted or was
/// deleted.
///
/// Nothing is sent if the finalizer exists. If other clients changed the finalizers, the object is read again.
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

/// Removes a finalizer from an object, if both exist.
///
/// If other clients changed the finalizers, the object is read again.
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

/// Reads the object again if a concurrent change explains why the write failed; `None` if the object was deleted.
async fn again<K: Writable>(
    client: &Client,
    before: &K,
    error: client::Error,
    tried: u32,
) -> Result<Option<K>, client::Error> {
    if error.is_not_found() {
        return Ok(None);
    }
    // The server returns "invalid" for a failed test operation, and for other errors, too.
    if !(error.is_invalid() || error.is_conflict()) || tried >= TRIES {
        return Err(error);
    }
    let Some(now) = client.fresh(before).await? else { return Ok(None) };
    if now.metadata().uid != before.metadata().uid {
        // A recreated object: its own event reconciles it.
        return Ok(None);
    }
    let known = error.is_invalid()
        && finalizers(&now) == finalizers(before)
        && is_deleting(&now) == is_deleting(before);
    if known { Err(error) } else { Ok(Some(now)) }
}

/// A patch that adds a finalizer to the list as it was read.
fn adding<K: Writable>(object: &K, name: &str) -> Value {
    let there = finalizers(object);
    // A missing list tests as null and cannot be appended to.
    let (list, add) = if there.is_empty() {
        (Value::Null, json!({"op": "add", "path": "/metadata/finalizers", "value": [name]}))
    } else {
        (json!(there), json!({"op": "add", "path": "/metadata/finalizers/-", "value": name}))
    };
    json!([same(object), {"op": "test", "path": "/metadata/finalizers", "value": list}, add])
}

/// A patch that removes all occurrences of a finalizer from the list as it was read.
fn removing<K: Writable>(object: &K, name: &str) -> Value {
    let mut operations = vec![same(object)];
    // From the end, so that earlier indexes stay valid.
    for (at, finalizer) in finalizers(object).iter().enumerate().rev() {
        if finalizer == name {
            let path = format!("/metadata/finalizers/{at}");
            operations.push(json!({"op": "test", "path": path, "value": name}));
            operations.push(json!({"op": "remove", "path": path}));
        }
    }
    Value::Array(operations)
}

/// Tests that the object has the same uid, so it was not recreated.
fn same<K: Writable>(object: &K) -> Value {
    json!({"op": "test", "path": "/metadata/uid", "value": object.metadata().uid})
}

fn finalizers<K: Writable>(object: &K) -> &[String] {
    object.metadata().finalizers.as_deref().unwrap_or_default()
}

fn is_deleting<K: Writable>(object: &K) -> bool {
    object.metadata().deletion_timestamp.is_some()
}

/// The server's rule for names: a subdomain, a slash, and up to 63 characters.
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
    fn names_are_validated_as_in_the_server() {
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
    fn an_empty_list_is_removed() {
        let mut map = object(&["a/x"]);
        assert!(remove(&mut map, "a/x") && !remove(&mut map, "a/x"));
        assert_eq!(map.metadata.finalizers, None);
        assert!(add(&mut map, "a/x") && contains(&map, "a/x") && !contains(&map, "a"));
    }

    #[test]
    fn patches_test_the_uid_and_the_finalizers_that_were_read() {
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
