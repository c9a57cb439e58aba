//! DER as Go's `encoding/asn1` reads it, down to the words of its errors.

/// The parameters of a field without any, as Go prints them.
const NO_PARAMETERS: &str = "{optional:false explicit:false application:false private:false defaultValue:<nil> \
                             tag:<nil> stringType:0 timeType:0 set:false omitEmpty:false}";

pub(super) const INTEGER: u32 = 2;
pub(super) const BIT_STRING: u32 = 3;
pub(super) const OID: u32 = 6;
pub(super) const SEQUENCE: u32 = 16;

/// The tag and length of an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) class: u8,
    pub(super) tag: u32,
    pub(super) compound: bool,
    length: usize,
}

/// An element: with its header, and without.
#[derive(Debug, Clone, Copy)]
pub(super) struct Element<'a> {
    pub(super) header: Header,
    pub(super) whole: &'a [u8],
    pub(super) content: &'a [u8],
}

/// The elements of a SEQUENCE, read in order.
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    offset: usize,
}

fn syntax(why: &str) -> String {
    format!("asn1: syntax error: {why}")
}

fn structure(why: &str) -> String {
    format!("asn1: structure error: {why}")
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, offset: 0 }
    }

    /// The unread bytes.
    pub(super) fn rest(&self) -> &'a [u8] {
        &self.bytes[self.offset..]
    }

    /// The next element, which must be universal and have this tag. `go_type` is how Go calls its type.
    pub(super) fn expect(&mut self, tag: u32, go_type: &str) -> Result<Element<'a>, String> {
        self.read(|header, offset| {
            let compound = tag == SEQUENCE;
            if header.class == 0 && header.tag == tag && header.compound == compound {
                return Ok(());
            }
            let Header { class, tag: found, compound, length } = header;
            Err(structure(&format!(
                "tags don't match ({tag} vs {{class:{class} tag:{found} length:{length} isCompound:{compound}}}) \
                 {NO_PARAMETERS} {go_type} @{offset}"
            )))
        })
    }

    /// The next element, with any tag.
    pub(super) fn any(&mut self) -> Result<Element<'a>, String> {
        self.read(|_, _| Ok(()))
    }

    fn read(&mut self, check: impl Fn(Header, usize) -> Result<(), String>) -> Result<Element<'a>, String> {
        if self.offset == self.bytes.len() {
            return Err(syntax("sequence truncated"));
        }
        let start = self.offset;
        let (header, offset) = self.header()?;
        check(header, offset)?;
        let end = offset + header.length;
        let content = self.bytes.get(offset..end).ok_or_else(|| syntax("data truncated"))?;
        self.offset = end;
        Ok(Element { header, whole: &self.bytes[start..end], content })
    }

    fn header(&self) -> Result<(Header, usize), String> {
        let mut offset = self.offset;
        let mut next = || {
            let byte = self.bytes.get(offset).copied().ok_or_else(|| syntax("truncated tag or length"))?;
            offset += 1;
            Ok::<u8, String>(byte)
        };
        let first = next()?;
        let mut tag = u32::from(first & 0x1f);
        if tag == 0x1f {
            tag = 0;
            loop {
                let byte = next()?;
                if tag >= 1 << 24 {
                    return Err(structure("base 128 integer too large"));
                }
                tag = tag << 7 | u32::from(byte & 0x7f);
                if byte & 0x80 == 0 {
                    break;
                }
            }
            if tag < 0x1f {
                return Err(syntax("non-minimal tag"));
            }
        }
        let byte = next()?;
        let mut length = usize::from(byte & 0x7f);
        if byte & 0x80 != 0 {
            let count = length;
            if count == 0 {
                return Err(syntax("indefinite length found (not DER)"));
            }
            length = 0;
            for _ in 0..count {
                let byte = next()?;
                if length >= 1 << 23 {
                    return Err(structure("length too large"));
                }
                length = length << 8 | usize::from(byte);
                if length == 0 {
                    return Err(structure("superfluous leading zeros in length"));
                }
            }
            if length < 0x80 {
                return Err(structure("non-minimal length"));
            }
        }
        Ok((Header { class: first >> 6, tag, compound: first & 0x20 != 0, length }, offset))
    }
}
