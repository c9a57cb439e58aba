//! Proxies: their selection and the tunnel through them.
//!
//! Owns `proxy-url`, `HTTPS_PROXY` and `NO_PROXY`, and HTTP `CONNECT`: TLS and HTTP/2 are end-to-end with the cluster.
//! SOCKS is not supported.

use std::net::IpAddr;

use base64::Engine as _;
use http::Uri;
use percent_encoding::percent_decode_str;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::ConnectError;
use super::kubeconfig::{Environment, KubeconfigError};
use super::stream::Io;

/// The maximum size of a proxy's response headers.
const LONGEST_HEAD: usize = 8 * 1024;

/// The proxy for a cluster from the environment, with Go's rules: none for localhost and for hosts in `NO_PROXY`. A
/// kubeconfig's `proxy-url` takes precedence over both.
pub(super) fn from_environment(
    cluster: &Uri,
    environment: &Environment,
) -> Result<Option<Uri>, KubeconfigError> {
    let Some(proxy) = &environment.https_proxy else { return Ok(None) };
    if cluster.scheme_str() != Some("https") || is_excepted(cluster, environment.no_proxy.as_deref()) {
        return Ok(None);
    }
    // Like curl, accept a bare HOST:PORT.
    let url = if proxy.contains("://") { proxy.clone() } else { format!("http://{proxy}") };
    url.parse().map(Some).map_err(|error| KubeconfigError::Proxy(proxy.clone(), error))
}

fn is_excepted(cluster: &Uri, no_proxy: Option<&str>) -> bool {
    let host = bare(cluster.host().unwrap_or_default());
    let address: Option<IpAddr> = host.parse().ok();
    if host.eq_ignore_ascii_case("localhost") || address.is_some_and(|address| address.is_loopback()) {
        return true;
    }
    no_proxy.unwrap_or_default().split(',').map(str::trim).filter(|rule| !rule.is_empty()).any(|rule| {
        if rule == "*" {
            return true;
        }
        if let (Some(address), Some((network, length))) = (address, rule.split_once('/')) {
            return is_within(address, network, length);
        }
        let (rule, port) = match rule.rsplit_once(':') {
            Some((name, port)) if !name.contains(':') || name.ends_with(']') => (name, Some(port)),
            _ => (rule, None),
        };
        if port.is_some_and(|port| port.parse() != Ok(cluster.port_u16().unwrap_or(443))) {
            return false;
        }
        match bare(rule).parse::<IpAddr>() {
            Ok(excepted) => address == Some(excepted),
            Err(_) => address.is_none() && is_named(host, rule),
        }
    })
}

/// Whether a rule matches a host: `example.com` matches the host and its subdomains, `.example.com` only subdomains.
fn is_named(host: &str, rule: &str) -> bool {
    let domain = rule.trim_start_matches('*').trim_start_matches('.');
    let below = host.len().checked_sub(domain.len()).and_then(|at| host.split_at_checked(at));
    let Some((before, end)) = below else { return false };
    !domain.is_empty()
        && end.eq_ignore_ascii_case(domain)
        && (before.ends_with('.') || (before.is_empty() && domain.len() == rule.len()))
}

fn is_within(address: IpAddr, network: &str, length: &str) -> bool {
    let same = |mine: u128, theirs: u128, bits: u32| {
        let shift = length.parse().ok().and_then(|length| bits.checked_sub(length));
        shift.is_some_and(|shift| {
            mine.checked_shr(shift).unwrap_or(0) == theirs.checked_shr(shift).unwrap_or(0)
        })
    };
    match (address, network.parse()) {
        (IpAddr::V4(mine), Ok(IpAddr::V4(theirs))) => {
            same(mine.to_bits().into(), theirs.to_bits().into(), 32)
        }
        (IpAddr::V6(mine), Ok(IpAddr::V6(theirs))) => same(mine.to_bits(), theirs.to_bits(), 128),
        _ => false,
    }
}

/// A host without the brackets of IPv6 URLs.
pub(super) fn bare(host: &str) -> &str {
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

/// A proxy that supports `CONNECT`.
#[derive(Clone)]
pub(super) struct Proxy {
    /// Its address; `https` means TLS to the proxy.
    pub(super) at: Uri,
    authorization: Option<String>,
}

impl Proxy {
    pub(super) fn new(at: Uri) -> Result<Self, ConnectError> {
        if !matches!(at.scheme_str(), Some("http" | "https")) || at.host().is_none_or(str::is_empty) {
            return Err(ConnectError::Proxy(at.to_string()));
        }
        let user = at.authority().and_then(|authority| authority.as_str().rsplit_once('@'));
        let authorization = user.map(|(user, _)| {
            let user: Vec<u8> = percent_decode_str(user).collect();
            base64::engine::general_purpose::STANDARD.encode(user)
        });
        Ok(Self { at, authorization })
    }

    /// Asks the proxy on the other side of `io` to connect to `to`.
    pub(super) async fn tunnel(&self, io: &mut dyn Io, to: &Uri) -> Result<(), TunnelError> {
        let host = to.host().unwrap_or_default();
        let port = to.port_u16().unwrap_or(if to.scheme_str() == Some("http") { 80 } else { 443 });
        let authorization = self.authorization.as_ref();
        let authorization = authorization.map(|basic| format!("Proxy-Authorization: Basic {basic}\r\n"));
        let authorization = authorization.unwrap_or_default();
        let head = format!("CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n{authorization}\r\n");
        io.write_all(head.as_bytes()).await?;
        io.flush().await?;
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            // Bytes after the headers belong to the cluster, so do not read beyond them.
            answer.push(io.read_u8().await?);
            if answer.len() > LONGEST_HEAD {
                return Err(TunnelError::NoProxy);
            }
        }
        let answer = String::from_utf8_lossy(&answer);
        let status = answer.lines().next().unwrap_or_default();
        let code = status.strip_prefix("HTTP/1.").and_then(|rest| rest.get(2..5));
        match code {
            Some(code) if code.starts_with('2') => Ok(()),
            Some("407") => Err(TunnelError::Credentials),
            Some(_) => Err(TunnelError::Refused(status.to_owned())),
            None => Err(TunnelError::NoProxy),
        }
    }
}

/// The proxy did not open a tunnel.
#[derive(Debug, thiserror::Error)]
pub(super) enum TunnelError {
    #[error("the proxy rejected the credentials; set them in its URL: http://USER:PASSWORD@HOST:PORT")]
    Credentials,
    #[error("the proxy rejected the CONNECT request: {0}")]
    Refused(String),
    #[error("the server at the proxy's address is not an HTTP proxy")]
    NoProxy,
    #[error("the proxy closed the connection")]
    Io(#[from] std::io::Error),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uri(text: &str) -> Uri {
        text.parse().unwrap()
    }

    #[test]
    fn no_proxy_matches_hosts_as_in_go() {
        let of = |cluster: &str, no_proxy: &str| {
            let environment = Environment {
                https_proxy: Some("proxy.example:3128".to_owned()),
                no_proxy: Some(no_proxy.to_owned()),
                ..Environment::default()
            };
            from_environment(&uri(cluster), &environment).unwrap().map(|proxy| proxy.to_string())
        };
        for (cluster, no_proxy) in [
            ("https://a.example", ""),
            ("https://a.example", "b.example,ample"),
            ("https://example", ".example"),
            ("https://a.example:6443", "a.example:443"),
            ("https://10.1.0.1", "10.0.0.0/16,10.1.0.2,10.1.0.0/99,1.0.1"),
            ("https://[2001:db8::1]", "2001:db9::/32"),
        ] {
            assert_eq!(
                of(cluster, no_proxy).as_deref(),
                Some("http://proxy.example:3128/"),
                "{cluster} {no_proxy}"
            );
        }
        for (cluster, no_proxy) in [
            ("http://a.example", ""),
            ("https://localhost:6443", ""),
            ("https://127.0.0.1:6443", ""),
            ("https://[::1]:6443", ""),
            ("https://a.example", "*"),
            ("https://a.example", "b.example, EXAMPLE"),
            ("https://a.example", ".example"),
            ("https://a.example", "*.example"),
            ("https://a.example:6443", "a.example:6443"),
            ("https://10.0.3.1", "10.0.0.0/16"),
            ("https://10.0.3.1", "0.0.0.0/0"),
            ("https://10.0.3.1:6443", "10.0.3.1"),
            ("https://[2001:db8::1]", "2001:db8::/32"),
            ("https://[2001:db8::1]:6443", "[2001:db8::1]:6443"),
            ("https://[2001:db8::1]", "2001:db8::1"),
        ] {
            assert_eq!(of(cluster, no_proxy), None, "{cluster} {no_proxy}");
        }
        let wrong = Environment { https_proxy: Some("http://a b".to_owned()), ..Environment::default() };
        let error = from_environment(&uri("https://a.example"), &wrong).unwrap_err().to_string();
        assert!(error.contains("use http://HOST:PORT"), "{error}");
    }

    #[test]
    fn only_http_proxies_are_accepted() {
        assert!(Proxy::new(uri("http://proxy:3128")).unwrap().authorization.is_none());
        let proxy = Proxy::new(uri("https://me:p%40ss@proxy:3128")).unwrap();
        assert_eq!(proxy.authorization.as_deref(), Some("bWU6cEBzcw=="));
        for other in ["socks5://proxy:1080", "proxy:1080"] {
            let error = Proxy::new(uri(other)).err().unwrap().to_string();
            assert!(error.contains("http://HOST:PORT"), "{error}");
        }
    }
}
