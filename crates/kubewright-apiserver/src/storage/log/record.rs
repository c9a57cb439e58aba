//! Records and their encoding. [`decode`](Record::decode) is the inverse of [`encode`](Record::encode) and
//! returns `None` for anything else. Checksums belong to frames.

use std::sync::Arc;

use bytes::Bytes;

use crate::storage::Revision;

/// One change in the log. See the [module](super) for the kinds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Record {
    Put { resource: Arc<str>, key: Arc<str>, revision: Revision, json: Bytes },
    Delete { resource: Arc<str>, key: Arc<str>, revision: Revision },
    Forget { resource: Arc<str> },
    Opened { revision: Revision },
    Closed { revision: Revision },
    End { objects: u64 },
}

impl Record {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Put { resource, key, revision, json } => {
                number(out, 1, *revision);
                text(out, resource.as_bytes());
                text(out, key.as_bytes());
                text(out, json);
            }
            Self::Delete { resource, key, revision } => {
                number(out, 2, *revision);
                text(out, resource.as_bytes());
                text(out, key.as_bytes());
            }
            Self::Forget { resource } => {
                out.push(3);
                text(out, resource.as_bytes());
            }
            Self::Opened { revision } => number(out, 4, *revision),
            Self::Closed { revision } => number(out, 5, *revision),
            Self::End { objects } => number(out, 6, *objects),
        }
    }

    /// Decodes one record from the front of `input`.
    pub(super) fn decode(input: &mut &[u8]) -> Option<Self> {
        let (kind, rest) = input.split_first()?;
        *input = rest;
        Some(match kind {
            1 => {
                let revision = take_number(input)?;
                let (resource, key) = (take_text(input)?, take_text(input)?);
                // Copied, so that one live object does not keep the whole frame in memory.
                Self::Put { resource, key, revision, json: Bytes::copy_from_slice(take_bytes(input)?) }
            }
            2 => {
                let revision = take_number(input)?;
                Self::Delete { resource: take_text(input)?, key: take_text(input)?, revision }
            }
            3 => Self::Forget { resource: take_text(input)? },
            4 => Self::Opened { revision: take_number(input)? },
            5 => Self::Closed { revision: take_number(input)? },
            6 => Self::End { objects: take_number(input)? },
            _ => return None,
        })
    }
}

fn number(out: &mut Vec<u8>, kind: u8, number: u64) {
    out.push(kind);
    out.extend_from_slice(&number.to_le_bytes());
}

fn text(out: &mut Vec<u8>, bytes: &[u8]) {
    // A longer value exceeds the frame limit and is rejected there.
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(bytes);
}

fn take_number(input: &mut &[u8]) -> Option<u64> {
    let (number, rest) = input.split_first_chunk()?;
    *input = rest;
    Some(u64::from_le_bytes(*number))
}

fn take_bytes<'a>(input: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, rest) = input.split_first_chunk()?;
    let (bytes, rest) = rest.split_at_checked(usize::try_from(u32::from_le_bytes(*length)).ok()?)?;
    *input = rest;
    Some(bytes)
}

fn take_text(input: &mut &[u8]) -> Option<Arc<str>> {
    str::from_utf8(take_bytes(input)?).ok().map(Arc::from)
}
