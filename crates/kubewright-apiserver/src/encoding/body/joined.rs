//! A list as a response body, assembled in chunks while it is sent.
//!
//! A few large chunks are cheaper to send than many small ones, and the buffer of a sent chunk is reused. A
//! list of any length needs the memory of one chunk.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};

use crate::storage::StoredObject;

/// Maximum size of a chunk.
const PIECE: usize = 64 << 10;

/// The items of a list.
pub(crate) enum Items {
    /// The stored JSON.
    Stored(Vec<Arc<StoredObject>>),
    /// Another encoding.
    Encoded(Vec<Bytes>),
}

impl Items {
    fn len(&self) -> usize {
        match self {
            Self::Stored(versions) => versions.len(),
            Self::Encoded(items) => items.len(),
        }
    }

    fn get(&self, at: usize) -> Option<&[u8]> {
        match self {
            Self::Stored(versions) => versions.get(at).map(|version| &*version.json),
            Self::Encoded(items) => items.get(at).map(|item| &**item),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Stored(versions) => versions.iter().map(|version| version.json.len()).sum(),
            Self::Encoded(items) => items.iter().map(Bytes::len).sum(),
        }
    }
}

pub(super) struct Joined {
    head: Vec<u8>,
    items: Items,
    /// Index of the first item of the next chunk.
    at: usize,
    separator: &'static [u8],
    tail: &'static [u8],
    left: usize,
    piece: BytesMut,
}

impl Joined {
    pub(super) fn new(head: Vec<u8>, items: Items, separator: &'static [u8], tail: &'static [u8]) -> Self {
        let separators = items.len().saturating_sub(1) * separator.len();
        let left = head.len() + items.bytes() + separators + tail.len();
        Self { head, items, at: 0, separator, tail, left, piece: BytesMut::new() }
    }

    /// Number of remaining bytes.
    pub(super) fn left(&self) -> usize {
        self.left
    }

    pub(super) fn next(&mut self) -> Option<Bytes> {
        if self.left == 0 {
            return None;
        }
        self.piece.reserve(PIECE.min(self.left));
        self.piece.extend_from_slice(&std::mem::take(&mut self.head));
        while let Some(item) = self.items.get(self.at) {
            // Reserve space for the separator and the tail. An item larger than a chunk is sent as its own
            // chunk.
            let end = self.separator.len() + self.tail.len();
            if !self.piece.is_empty() && self.piece.len() + item.len() + end > PIECE {
                break;
            }
            if self.at > 0 {
                self.piece.extend_from_slice(self.separator);
            }
            self.piece.extend_from_slice(item);
            self.at += 1;
        }
        if self.at == self.items.len() {
            self.piece.extend_from_slice(std::mem::take(&mut self.tail));
        }
        let piece = self.piece.split().freeze();
        self.left -= piece.len();
        Some(piece)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(items: &[Vec<u8>]) -> (Vec<u8>, Vec<usize>) {
        let items = items.iter().map(|item| Bytes::copy_from_slice(item)).collect();
        let mut joined = Joined::new(b"<".to_vec(), Items::Encoded(items), b",", b">");
        let expected = joined.left();
        let (mut all, mut sizes) = (Vec::new(), Vec::new());
        while let Some(piece) = joined.next() {
            sizes.push(piece.len());
            all.extend_from_slice(&piece);
        }
        assert_eq!((all.len(), joined.left()), (expected, 0));
        (all, sizes)
    }

    #[test]
    fn items_are_joined_with_commas_between_head_and_tail() {
        assert_eq!(read(&[]).0, b"<>");
        assert_eq!(read(&[b"a".to_vec()]).0, b"<a>");
        assert_eq!(read(&[b"a".to_vec(), Vec::new(), b"c".to_vec()]).0, b"<a,,c>");
    }

    #[test]
    fn a_long_list_is_chunked_and_a_long_item_is_one_chunk() {
        let items = [vec![b'a'; 40_000], vec![b'b'; 40_000], vec![b'c'; 200_000], vec![b'd'; 10]];
        let (all, sizes) = read(&items);
        assert_eq!(all, [b"<", items.join(&b","[..]).as_slice(), b">"].concat());
        assert_eq!(sizes, [40_001, 40_001, 200_001, 12]);
    }
}
