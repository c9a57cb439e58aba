//! Listen addresses, in Go's notation.

use std::fmt;
use std::str::FromStr;

/// A listen address: `:8081` for every interface, `127.0.0.1:0` for a free port, `[::]:8443`, `localhost:8080`; or `0`
/// to disable the server.
///
/// ```
/// use kubewright_runtime::BindAddress;
///
/// let every: BindAddress = ":8081".parse()?;
/// assert_eq!(every.to_string(), ":8081");
/// assert!("0".parse::<BindAddress>()?.is_off());
/// assert!("8081".parse::<BindAddress>().is_err());
/// # Ok::<(), kubewright_runtime::AddressError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BindAddress(Option<HostPort>);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HostPort {
    /// A hostname or an address without brackets; empty means every interface.
    pub(crate) host: String,
    pub(crate) port: u16,
}

/// An invalid listen address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid listen address {given:?}: {why}; use \":8081\" for a port on every interface, \
     \"127.0.0.1:8081\" or \"[::1]:8081\" for one address, \"0\" to disable the server"
)]
pub struct AddressError {
    given: String,
    why: &'static str,
}

impl BindAddress {
    /// No address: the server is disabled.
    pub const OFF: Self = Self(None);

    /// A port on every interface.
    pub fn port(port: u16) -> Self {
        Self(Some(HostPort { host: String::new(), port }))
    }

    /// Whether the server is disabled.
    pub fn is_off(&self) -> bool {
        self.0.is_none()
    }

    pub(crate) fn host_port(&self) -> Option<&HostPort> {
        self.0.as_ref()
    }
}

impl FromStr for BindAddress {
    type Err = AddressError;

    fn from_str(given: &str) -> Result<Self, AddressError> {
        let wrong = |why| AddressError { given: given.to_owned(), why };
        if matches!(given, "" | "0") {
            return Ok(Self::OFF);
        }
        if given.contains(['/', ' ']) {
            return Err(wrong("it must not be a URL or contain spaces"));
        }
        let (host, port) =
            given.rsplit_once(':').ok_or_else(|| wrong("the colon before the port is missing"))?;
        let port = port.parse().map_err(|_| wrong("the port is not a number from 0 to 65535"))?;
        let host = match host.strip_prefix('[') {
            Some(rest) => rest.strip_suffix(']').ok_or_else(|| wrong("the closing bracket is missing"))?,
            None if host.contains(':') => return Err(wrong("an IPv6 address needs brackets")),
            None => host,
        };
        if host.contains(['[', ']']) {
            return Err(wrong("it has an unexpected bracket"));
        }
        Ok(Self(Some(HostPort { host: host.to_owned(), port })))
    }
}

impl fmt::Display for BindAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            None => f.write_str("0"),
            Some(address) => address.fmt(f),
        }
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_parsed_like_in_go() {
        for given in
            [":8081", "127.0.0.1:0", "[::]:8443", "localhost:8080", "0.0.0.0:65535", "[fe80::1%eth0]:1"]
        {
            let read: BindAddress = given.parse().unwrap();
            assert!(!read.is_off());
            assert_eq!(read.to_string(), given);
        }
        for off in ["0", ""] {
            assert_eq!(off.parse(), Ok(BindAddress::OFF));
        }
    }

    #[test]
    fn the_error_for_an_invalid_address_says_what_to_use() {
        for (given, why) in [
            ("8081", "colon"),
            (":http", "number"),
            (":65536", "65535"),
            ("::1:80", "brackets"),
            ("[::1:80", "closing bracket"),
            ("http://localhost:80", "not be a URL"),
            ("a[b]:80", "bracket"),
        ] {
            let error = given.parse::<BindAddress>().unwrap_err().to_string();
            assert!(error.contains(why) && error.contains("\":8081\""), "{given}: {error}");
        }
    }
}
