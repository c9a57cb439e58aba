//! The list of a small facade with re-exports.

use super::*;

const FACADE: &str = r"
mod own;
pub use below::{Client, Hidden as Shown, inner};
pub use below::client::Client as Again;
pub use other::thing;
#[doc(hidden)]
pub use below::Secret;
pub use self::own::Own;
pub mod prelude { pub use below::Client; pub use below::Tr as _; }
#[macro_export]
macro_rules! start { () => {} }
";

const OWN: &str = r"
use below::Client;
pub struct Own { pub name: String, secret: u8 }
impl Own {
    pub fn client(&self) -> &Client { todo(self) }
    fn private(&self) {}
    #[doc(hidden)]
    pub fn hidden(&self) {}
}
";

const BELOW: &str = r"
pub mod client;
mod gone;
pub mod inner {
    /// Another type of the same name.
    #[derive(Debug, Clone)]
    #[non_exhaustive]
    pub enum Error { Lost, Late { by: u32 }, Other(std::io::Error, u8) }
    impl std::fmt::Display for Error {}
}
pub use client::Client;
pub struct Hidden<T>(pub T);
pub struct Secret;
pub trait Tr: Send { type Out: Clone; fn needed(&self) -> Self::Out; fn given(&self) {} }
";

const CLIENT: &str = r"
pub struct Client { kube: u8 }
pub struct Error;
impl Error { pub fn unlisted(&self) {} }
impl Client {
    /// Gets it.
    pub async fn get<K: Object + 'static>(&self, key: &Key, mut map: impl Fn(&K) -> Vec<Key> + Send) -> Result<Arc<K>, Error> where K: Clone {
        loop {}
    }
    pub(crate) fn raw(&self) {}
}
impl<T> From<&'static [T]> for Client where T: Copy {}
";

fn list() -> String {
    let files = Files::planted(&[
        ("crates/facade/src/lib.rs", FACADE),
        ("crates/facade/src/own.rs", OWN),
        ("crates/below/src/lib.rs", BELOW),
        ("crates/below/src/client.rs", CLIENT),
        ("crates/below/src/gone.rs", ""),
    ]);
    public_api(&files, &["facade", "below"]).unwrap()
}

#[test]
fn the_list_has_every_public_item_once_with_its_signature() {
    insta::assert_snapshot!(list(), @"
    impl Clone for facade::inner::Error
    impl Debug for facade::inner::Error
    impl std::fmt::Display for facade::inner::Error
    impl<T> From<&'static[T]> for facade::Client where T: Copy
    pub async fn facade::Client::get<K: Object + 'static> (&self, key: &Key, mut map: impl Fn(&K) -> Vec<Key> + Send) -> Result<Arc<K>, Error> where K: Clone
    pub enum facade::inner::Error #[non_exhaustive]
    pub field facade::Own.name: String
    pub field facade::Shown.0: T
    pub field facade::inner::Error::Late.by: u32
    pub fn facade::Own::client(&self) -> &Client
    pub fn facade::prelude::_::given(&self) { .. }
    pub fn facade::prelude::_::needed(&self) -> Self::Out
    pub macro facade::start!
    pub mod facade::inner
    pub mod facade::prelude
    pub struct facade::Client
    pub struct facade::Own
    pub struct facade::Shown<T>
    pub trait facade::prelude::_: Send
    pub type facade::prelude::_::Out: Clone
    pub use facade::Client as facade::Again
    pub use facade::Client as facade::prelude::Client
    pub use other::thing as facade::thing
    pub variant facade::inner::Error::Late
    pub variant facade::inner::Error::Lost
    pub variant facade::inner::Error::Other(std::io::Error, u8)
    ");
}

#[test]
fn a_change_is_shown_as_a_difference() {
    let before = list();
    let after = before.replace("facade::Own.name: String", "facade::Own.title: String");
    assert_eq!(
        difference(&before, &after),
        ["- pub field facade::Own.name: String", "+ pub field facade::Own.title: String"]
    );
    assert!(difference(&before, &before).is_empty());
}
