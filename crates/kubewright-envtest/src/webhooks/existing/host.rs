//! Hosts and ports: the host by which an existing cluster calls this process, the name of this machine, and whether a
//! port of this machine is open.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;

use kubewright_apimachinery::names::dns1123_subdomain;

/// The variable of [`Builder::webhook_host`](crate::Builder::webhook_host).
const VARIABLE: &str = "KUBEWRIGHT_WEBHOOK_HOST";
const HOSTNAME_FILE: &str = "/proc/sys/kernel/hostname";
/// How long a connection to loopback may take.
const CONNECT_WITHIN: Duration = Duration::from_secs(1);

/// The webhook host is invalid.
#[derive(Debug, thiserror::Error)]
#[error("invalid webhook host {0:?}: must be a DNS name or an IP address, without scheme and port")]
pub struct WebhookHostError(String);

/// The host by which the API server calls this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Host {
    Name(String),
    Ip(IpAddr),
}

impl Host {
    /// The given host, or that of the environment variable. `None` if there is none or it is empty.
    pub(crate) fn find(given: Option<String>) -> Result<Option<Self>, WebhookHostError> {
        Self::from_variable(given, std::env::var(VARIABLE).ok())
    }

    fn from_variable(
        given: Option<String>,
        variable: Option<String>,
    ) -> Result<Option<Self>, WebhookHostError> {
        let host = given.or(variable).filter(|host| !host.is_empty());
        host.map(|host| Self::parse(&host)).transpose()
    }

    fn parse(text: &str) -> Result<Self, WebhookHostError> {
        let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
        if let Ok(ip) = bare.parse() {
            return Ok(Self::Ip(ip));
        }
        let name = text.to_ascii_lowercase();
        if dns1123_subdomain(&name).is_empty() {
            Ok(Self::Name(name))
        } else {
            Err(WebhookHostError(text.to_owned()))
        }
    }

    /// The address that the webhook server listens on: loopback if the API server calls loopback, else all interfaces.
    pub(crate) fn listen(&self) -> &'static str {
        match self {
            Self::Name(name) if name == "localhost" => "127.0.0.1:0",
            Self::Ip(IpAddr::V4(ip)) if ip.is_loopback() => "127.0.0.1:0",
            Self::Ip(IpAddr::V6(ip)) if ip.is_loopback() => "[::1]:0",
            Self::Ip(IpAddr::V6(_)) => "[::]:0",
            Self::Name(_) | Self::Ip(IpAddr::V4(_)) => "0.0.0.0:0",
        }
    }

    /// The name in the certificate.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Name(name) => name.clone(),
            Self::Ip(ip) => ip.to_string(),
        }
    }

    /// The URL of a port, without a path.
    pub(crate) fn url(&self, port: u16) -> String {
        match self {
            Self::Name(name) => format!("https://{name}:{port}"),
            // Puts brackets around an IPv6 address.
            Self::Ip(ip) => format!("https://{}", SocketAddr::new(*ip, port)),
        }
    }
}

/// The host name of this machine; `None` if it is unknown.
pub(crate) fn machine() -> Option<String> {
    let of_linux = || std::fs::read_to_string(HOSTNAME_FILE).ok();
    let of_program = || {
        let output = Command::new("hostname").stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let name = of_linux().or_else(of_program)?.trim().to_owned();
    (!name.is_empty()).then_some(name)
}

/// Whether a server may listen on a port of this machine's loopback interface. Only a refused connection proves that
/// none does.
///
/// Blocks, but the kernel answers for loopback without the server.
pub(crate) fn may_listen(port: u16) -> bool {
    let connect = |ip: IpAddr| TcpStream::connect_timeout(&SocketAddr::new(ip, port), CONNECT_WITHIN);
    match connect(Ipv4Addr::LOCALHOST.into()) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
        _ => return true,
    }
    // A machine may have no IPv6.
    connect(Ipv6Addr::LOCALHOST.into()).is_ok()
}

/// Whether a server listens on the address of a URL. Names are not resolved: that could take long, and those of local
/// clusters are unknown outside of the cluster.
pub(crate) fn is_open(url: &str) -> bool {
    let address = url.trim_start_matches("https://").parse();
    address.is_ok_and(|address: SocketAddr| TcpStream::connect_timeout(&address, CONNECT_WITHIN).is_ok())
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use kubewright_runtime::eventually;

    use super::*;

    fn host(text: &str) -> Host {
        Host::parse(text).unwrap()
    }

    #[test]
    fn the_server_listens_on_loopback_only_for_a_loopback_host() {
        let listens = |text: &str| (host(text).listen(), host(text).url(4711));
        assert_eq!(listens("localhost"), ("127.0.0.1:0", "https://localhost:4711".to_owned()));
        assert_eq!(listens("127.0.0.1"), ("127.0.0.1:0", "https://127.0.0.1:4711".to_owned()));
        assert_eq!(listens("::1"), ("[::1]:0", "https://[::1]:4711".to_owned()));
        assert_eq!(listens("[fd00::5]"), ("[::]:0", "https://[fd00::5]:4711".to_owned()));
        assert_eq!(listens("172.18.0.1"), ("0.0.0.0:0", "https://172.18.0.1:4711".to_owned()));
        let docker = ("0.0.0.0:0", "https://host.docker.internal:4711".to_owned());
        assert_eq!(listens("Host.Docker.Internal"), docker);
    }

    #[test]
    fn the_builder_takes_precedence_over_the_variable() {
        let found = |given: Option<&str>, variable: Option<&str>| {
            Host::from_variable(given.map(Into::into), variable.map(Into::into)).unwrap()
        };
        assert_eq!(found(None, None), None);
        assert_eq!(found(None, Some("")), None);
        assert_eq!(found(None, Some("b.example.com")), Some(host("b.example.com")));
        assert_eq!(found(Some("a.example.com"), Some("b.example.com")), Some(host("a.example.com")));
        assert_eq!(found(Some(""), Some("b.example.com")), None);
    }

    #[test]
    fn a_host_is_not_a_url() {
        for wrong in ["https://a.example.com", "a.example.com:443", "[::1", "a b", "a_b"] {
            assert!(Host::parse(wrong).is_err(), "{wrong}");
        }
        insta::assert_snapshot!(
            Host::parse("a:443").unwrap_err(),
            @r#"invalid webhook host "a:443": must be a DNS name or an IP address, without scheme and port"#
        );
    }

    #[tokio::test]
    async fn a_port_is_open_while_a_server_listens() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let url = host("127.0.0.1").url(port);
        assert!(may_listen(port) && is_open(&url));
        drop(listener);
        // A process that another test starts at this moment has the listener until its exec.
        let closed = eventually(Duration::from_secs(10), async || {
            if may_listen(port) || is_open(&url) { Err("the port is open") } else { Ok(()) }
        });
        closed.await.unwrap();
        assert!(!is_open(&host("localhost").url(port)));
        assert!(machine().is_some());
    }
}
