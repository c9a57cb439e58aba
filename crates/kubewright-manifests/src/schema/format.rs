//! The formats that an API server checks.

/// What `format` can say. Others are ignored by the API server, which warns of them.
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
    /// Bytes in base64.
    Byte,
    /// `2024-02-29`.
    Date,
    /// RFC 3339.
    DateTime,
    /// As Go and Scala write them: `1h30m`, `2 days`.
    Duration,
    /// An address of electronic mail.
    Email,
    /// A host name by RFC 1034.
    Hostname,
    /// An address of IPv4.
    Ipv4,
    /// An address of IPv6.
    Ipv6,
    /// A range of addresses: `10.0.0.0/8`.
    Cidr,
    /// A hardware address.
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
    /// An object id of BSON.
    BsonObjectId,
    /// A number of a credit card.
    CreditCard,
    /// An ISBN of either length.
    Isbn,
    /// An ISBN of ten digits.
    Isbn10,
    /// An ISBN of thirteen digits.
    Isbn13,
    /// Anything; for people who fill in forms.
    Password,
    /// A social security number of the United States.
    Ssn,
    /// A name by RFC 1123's rules for labels.
    ShortName,
    /// A name by RFC 1123's rules for subdomains.
    LongName,
}

impl Format {
    /// As the schema has it.
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
