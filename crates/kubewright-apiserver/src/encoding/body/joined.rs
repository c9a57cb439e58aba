//! A list as a response body, assembled in chunks while it is sent.
//!
//! A few large chunks are cheaper to send than many small ones, and the buffer of a sent chunk is reused. A
//! list of any length needs the memory of one chunk. After a rendered chunk the task yields, so that a long list does
//! not delay other connections of its worker thread.

use std::borrow::Cow;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};

use crate::storage::StoredObject;

/// A chunk ends with the item that reaches this size.
const PIECE: usize = 64 << 10;
/// A chunk has at most this many items that are rendered within some microseconds each.
const RENDERED: usize = 256;
/// A chunk has at most this many items whose encoding is slow, such as YAML.
const SLOWLY_RENDERED: usize = 16;
/// A chunk of rendered items ends with the item whose object reaches this total size.
const RENDERED_BYTES: usize = 512 << 10;

/// Renders an item when it is sent.
pub(crate) type Render = Box<dyn Fn(&StoredObject) -> Bytes + Send>;

/// The items of a list.
pub(crate) enum Items {
    /// The stored JSON.
    Stored(Vec<Arc<StoredObject>>),
    /// Another encoding.
    Encoded(Vec<Bytes>),
    /// Another view of stored objects, such as rows of a Table. Rendered one by one while the list is sent, at most
    /// this many per chunk.
    Rendered(Vec<Arc<StoredObject>>, Render, usize),
}

impl Items {
    pub(crate) fn rendered(versions: Vec<Arc<StoredObject>>, render: Render) -> Self {
        Self::Rendered(versions, render, RENDERED)
    }

    /// Items whose encoding takes long.
    pub(crate) fn slowly_rendered(versions: Vec<Arc<StoredObject>>, render: Render) -> Self {
        Self::Rendered(versions, render, SLOWLY_RENDERED)
    }

    fn len(&self) -> usize {
        match self {
            Self::Stored(versions) | Self::Rendered(versions, ..) => versions.len(),
            Self::Encoded(items) => items.len(),
        }
    }

    /// Appends an item to a chunk.
    fn append(&self, at: usize, piece: &mut BytesMut) {
        match self {
            Self::Stored(versions) => piece.extend_from_slice(&versions[at].json),
            Self::Encoded(items) => piece.extend_from_slice(&items[at]),
            Self::Rendered(versions, render, _) => piece.extend_from_slice(&render(&versions[at])),
        }
    }

    /// Whether a chunk must end, because rendering its items took long enough.
    fn is_enough(&self, count: usize, bytes: usize) -> bool {
        matches!(self, Self::Rendered(_, _, most) if count >= *most || bytes >= RENDERED_BYTES)
    }

    /// The size of the object that is rendered for an item.
    fn rendered_from(&self, at: usize) -> usize {
        if let Self::Rendered(versions, ..) = self { versions[at].json.len() } else { 0 }
    }

    /// The size, if it is known before the items are rendered.
    fn bytes(&self) -> Option<usize> {
        match self {
            Self::Stored(versions) => Some(versions.iter().map(|version| version.json.len()).sum()),
            Self::Encoded(items) => Some(items.iter().map(Bytes::len).sum()),
            Self::Rendered(..) => None,
        }
    }
}

pub(super) struct Joined {
    head: Vec<u8>,
    items: Items,
    /// Index of the next item.
    at: usize,
    separator: &'static [u8],
    tail: Cow<'static, [u8]>,
    /// The remaining size, if it is known.
    left: Option<usize>,
    ended: bool,
    /// The last chunk was rendered, and the task has not yielded since.
    yields: bool,
    piece: BytesMut,
}

impl Joined {
    pub(super) fn new(
        head: Vec<u8>,
        items: Items,
        separator: &'static [u8],
        tail: Cow<'static, [u8]>,
    ) -> Self {
        let separators = items.len().saturating_sub(1) * separator.len();
        let left = items.bytes().map(|bytes| head.len() + bytes + separators + tail.len());
        Self {
            head,
            items,
            at: 0,
            separator,
            tail,
            left,
            ended: false,
            yields: false,
            piece: BytesMut::new(),
        }
    }

    /// Number of remaining bytes, if it is known.
    pub(super) fn left(&self) -> Option<usize> {
        self.left
    }

    pub(super) fn is_ended(&self) -> bool {
        self.ended
    }

    pub(super) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if std::mem::take(&mut self.yields) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(self.next())
    }

    fn next(&mut self) -> Option<Bytes> {
        if self.ended {
            return None;
        }
        self.piece.reserve(PIECE.min(self.left.unwrap_or(PIECE)));
        self.piece.extend_from_slice(&std::mem::take(&mut self.head));
        let (count, first) = (self.items.len(), self.at);
        let mut rendered_from = 0;
        while self.at < count
            && self.piece.len() < PIECE
            && !self.items.is_enough(self.at - first, rendered_from)
        {
            rendered_from += self.items.rendered_from(self.at);
            if self.at > 0 {
                self.piece.extend_from_slice(self.separator);
            }
            self.items.append(self.at, &mut self.piece);
            self.at += 1;
        }
        if self.at == count {
            self.piece.extend_from_slice(&std::mem::take(&mut self.tail));
            self.ended = true;
        }
        self.yields = !self.ended && matches!(self.items, Items::Rendered(..));
        let piece = self.piece.split().freeze();
        self.left = self.left.map(|left| left - piece.len());
        Some(piece)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::Attributes;

    fn read(items: &[Vec<u8>]) -> (Vec<u8>, Vec<usize>) {
        let items = items.iter().map(|item| Bytes::copy_from_slice(item)).collect();
        let mut joined = Joined::new(b"<".to_vec(), Items::Encoded(items), b",", b">".into());
        let expected = joined.left().unwrap();
        let (mut all, mut sizes) = (Vec::new(), Vec::new());
        while let Some(piece) = joined.next() {
            sizes.push(piece.len());
            all.extend_from_slice(&piece);
        }
        assert_eq!((all.len(), joined.left(), joined.is_ended()), (expected, Some(0), true));
        (all, sizes)
    }

    #[test]
    fn items_are_joined_with_commas_between_head_and_tail() {
        assert_eq!(read(&[]).0, b"<>");
        assert_eq!(read(&[b"a".to_vec()]).0, b"<a>");
        assert_eq!(read(&[b"a".to_vec(), Vec::new(), b"c".to_vec()]).0, b"<a,,c>");
    }

    #[test]
    fn a_long_list_is_chunked() {
        let items = [vec![b'a'; 40_000], vec![b'b'; 40_000], vec![b'c'; 200_000], vec![b'd'; 10]];
        let (all, sizes) = read(&items);
        assert_eq!(all, [b"<", items.join(&b","[..]).as_slice(), b">"].concat());
        assert_eq!(sizes, [80_002, 200_001, 12]);
    }

    #[test]
    fn a_chunk_of_rendered_items_has_a_limit_for_the_size_of_their_objects() {
        let json = Bytes::from(vec![b' '; RENDERED_BYTES / 2]);
        let version = Arc::new(StoredObject::new("a".into(), 1, Attributes::default(), json));
        let render: Render = Box::new(|_| Bytes::from_static(b"1"));
        let items = Items::rendered(vec![version; 5], render);
        let mut joined = Joined::new(Vec::new(), items, b"", b"".into());
        let pieces: Vec<usize> = std::iter::from_fn(|| joined.next()).map(|piece| piece.len()).collect();
        assert_eq!(pieces, [2, 2, 1]);
    }

    #[test]
    fn a_rendered_list_yields_between_chunks() {
        let version = StoredObject::new("a".into(), 1, Attributes::default(), Bytes::from_static(b"{}"));
        let version = Arc::new(version);
        let versions = (0..3 * RENDERED).map(|_| version.clone()).collect();
        let render: Render = Box::new(|_| Bytes::from_static(b"1"));
        let mut joined = Joined::new(b"[".to_vec(), Items::rendered(versions, render), b",", b"]".into());
        let mut context = Context::from_waker(std::task::Waker::noop());
        let (mut all, mut waits) = (Vec::new(), 0);
        loop {
            match joined.poll_next(&mut context) {
                Poll::Pending => waits += 1,
                Poll::Ready(Some(piece)) => all.extend_from_slice(&piece),
                Poll::Ready(None) => break,
            }
        }
        assert_eq!((all.len(), waits), (1 + 2 * 3 * RENDERED, 2));
    }
}
