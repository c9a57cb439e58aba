//! Reads the protobuf wire format: tags, varints, and messages with few fields.
//!
//! Bytes come from clients. Nothing here panics, and nothing is allocated for a length before its bytes are there.

use serde_json::Value;

use super::{ProtobufError, Result};

/// A small message of numbers and bytes.
pub(super) struct Leaf<'a>(Vec<(u32, LeafValue<'a>)>);

pub(super) enum LeafValue<'a> {
    Integer(i64),
    Bytes(&'a [u8]),
}

impl<'a> Leaf<'a> {
    pub(super) fn read(bytes: &'a [u8]) -> Result<Self> {
        let mut reader = Reader(bytes);
        let mut values = Vec::new();
        while let Some((number, wire)) = reader.tag()? {
            match wire {
                0 => values.push((number, LeafValue::Integer(reader.varint()?.cast_signed()))),
                2 => values.push((number, LeafValue::Bytes(reader.bytes()?))),
                _ => reader.skip(wire)?,
            }
        }
        Ok(Self(values))
    }

    pub(super) fn integer(&self, number: u32) -> i64 {
        let found = self.0.iter().rev().find(|(own, _)| *own == number);
        if let Some((_, LeafValue::Integer(value))) = found { *value } else { 0 }
    }

    pub(super) fn raw(&self, number: u32) -> &'a [u8] {
        let found = self.0.iter().rev().find(|(own, _)| *own == number);
        if let Some((_, LeafValue::Bytes(bytes))) = found { bytes } else { &[] }
    }

    pub(super) fn text(&self, number: u32) -> Result<Value> {
        let text = std::str::from_utf8(self.raw(number)).map_err(|_| ProtobufError::Utf8)?;
        Ok(Value::String(text.to_owned()))
    }
}

/// The rest of a message.
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    /// The number and kind of the next field; none at the end.
    pub(super) fn tag(&mut self) -> Result<Option<(u32, u8)>> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let number = u32::try_from(tag >> 3).map_err(|_| ProtobufError::Truncated)?;
        Ok(Some((number, (tag & 7) as u8)))
    }

    pub(super) fn varint(&mut self) -> Result<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (first, rest) = self.0.split_first().ok_or(ProtobufError::Truncated)?;
            self.0 = rest;
            value |= u64::from(first & 0x7f) << shift;
            if first & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(ProtobufError::Truncated)
    }

    pub(super) fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(ProtobufError::Truncated)?;
        self.0 = rest;
        Ok(taken)
    }

    pub(super) fn bytes(&mut self) -> Result<&'a [u8]> {
        let length = usize::try_from(self.varint()?).map_err(|_| ProtobufError::Truncated)?;
        self.take(length)
    }

    pub(super) fn text(&mut self) -> Result<String> {
        let bytes = self.bytes()?;
        std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| ProtobufError::Utf8)
    }

    pub(super) fn skip(&mut self, wire: u8) -> Result<()> {
        match wire {
            0 => self.varint().map(drop),
            1 => self.take(8).map(drop),
            2 => self.bytes().map(drop),
            5 => self.take(4).map(drop),
            _ => Err(ProtobufError::Truncated),
        }
    }
}
