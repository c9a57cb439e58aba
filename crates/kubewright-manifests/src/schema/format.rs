//! Formats that the API server validates.

/// The values of `format`. The API server ignores others with a warning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// A 32-bit integer.
    Int32,
    /// A 64-bit integer.
    Int64,
    /// A 32-bit floating-point number.
    Float,
    /// A 64-bit floating-point number.
    Double,
    /// Base64.
    Byte,
    /// `2024-02-29`.
    Date,
    /// RFC 3339.
    DateTime,
    /// A duration of Go or Scala: `1h30m`, `2 days`.
    Duration,
    /// An email address.
    Email,
    /// An RFC 1034 hostname.
    Hostname,
    /// An IPv4 address.
    Ipv4,
    /// An IPv6 address.
    Ipv6,
    /// A CIDR: `10.0.0.0/8`.
    Cidr,
    /// A MAC address.
    Mac,
    /// An absolute URI.
    Uri,
    /// A UUID of any version.
    Uuid,
    /// A UUID of version 3.
    Uuid3,
    /// A UUID of version 4.
    Uuid4,
    /// A UUID of version 5.
    Uuid5,
    /// `#ffffff`.
    HexColor,
    /// `rgb(255, 255, 255)`.
    RgbColor,
    /// A BSON object ID.
    BsonObjectId,
    /// A credit card number.
    CreditCard,
    /// An ISBN-10 or ISBN-13.
    Isbn,
    /// An ISBN-10.
    Isbn10,
    /// An ISBN-13.
    Isbn13,
    /// Any string; a hint for user interfaces.
    Password,
    /// A U.S. social security number.
    Ssn,
    /// An RFC 1123 label.
    ShortName,
    /// An RFC 1123 subdomain.
    LongName,
}

impl Format {
    /// The name in the schema.
    pub fn name(self) -> &'static str {
        match self {
            Self::Int32 => "int32",
            Self::Int64 => "int64",
            Self::Float => "float",
            Self::Double => "double",
            Self::Byte => "byte",
            Self::Date => "date",
            Self::DateTime => "date-time",
            Self::Duration => "duration",
            Self::Email => "email",
            Self::Hostname => "hostname",
            Self::Ipv4 => "ipv4",
            Self::Ipv6 => "ipv6",
            Self::Cidr => "cidr",
            Self::Mac => "mac",
            Self::Uri => "uri",
            Self::Uuid => "uuid",
            Self::Uuid3 => "uuid3",
            Self::Uuid4 => "uuid4",
            Self::Uuid5 => "uuid5",
            Self::HexColor => "hexcolor",
            Self::RgbColor => "rgbcolor",
            Self::BsonObjectId => "bsonobjectid",
            Self::CreditCard => "creditcard",
            Self::Isbn => "isbn",
            Self::Isbn10 => "isbn10",
            Self::Isbn13 => "isbn13",
            Self::Password => "password",
            Self::Ssn => "ssn",
            Self::ShortName => "k8s-short-name",
            Self::LongName => "k8s-long-name",
        }
    }

    pub(super) fn fits(self) -> &'static [&'static str] {
        match self {
            Self::Int32 | Self::Int64 => &["integer"],
            Self::Float | Self::Double => &["number"],
            _ => super::STRING,
        }
    }
}
