//! The static files of the page, and the headers of its responses.
//!
//! The files contain no data and are the same for every operator. The page loads nothing from other hosts, and the
//! headers enforce that.

use bytes::Bytes;

/// Which server the page belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// `kubewright dev`.
    Dev,
    /// A manager: read-only, with a token, without the content of objects.
    Manager,
}

/// Headers of every response, except the content type.
pub const HEADERS: &[(&str, &str)] = &[
    // Nothing inline, nothing from other hosts.
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
    ),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    // A new binary has other content under the same paths.
    ("cache-control", "no-store"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
];

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

const INDEX: &str = include_str!("../assets/index.html");

/// What differs in the HTML of a manager's page.
const OF_MANAGER: &[(&str, &str)] = &[
    ("data-mode=\"dev\"", "data-mode=\"manager\""),
    ("<title>kubewright dev</title>", "<title>kubewright manager</title>"),
    ("<span class=\"sub\">dev</span>", "<span class=\"sub\">manager</span>"),
];

/// The other files: path, content type, content.
const FILES: &[(&str, &str, &str)] = &[
    ("/page.css", CSS, include_str!("../assets/page.css")),
    ("/theme.js", SCRIPT, include_str!("../assets/theme.js")),
    ("/page.js", SCRIPT, include_str!("../assets/page.js")),
    ("/model.js", SCRIPT, include_str!("../assets/model.js")),
    ("/connection.js", SCRIPT, include_str!("../assets/connection.js")),
    ("/view.js", SCRIPT, include_str!("../assets/view.js")),
    ("/tree.js", SCRIPT, include_str!("../assets/tree.js")),
    ("/newest.js", SCRIPT, include_str!("../assets/newest.js")),
    ("/reconciles.js", SCRIPT, include_str!("../assets/reconciles.js")),
    ("/events.js", SCRIPT, include_str!("../assets/events.js")),
    ("/object.js", SCRIPT, include_str!("../assets/object.js")),
    ("/overview.js", SCRIPT, include_str!("../assets/overview.js")),
    ("/reviews.js", SCRIPT, include_str!("../assets/reviews.js")),
    ("/logs.js", SCRIPT, include_str!("../assets/logs.js")),
    ("/why.js", SCRIPT, include_str!("../assets/why.js")),
    ("/graph.js", SCRIPT, include_str!("../assets/graph.js")),
    ("/lanes.js", SCRIPT, include_str!("../assets/lanes.js")),
    ("/failures.js", SCRIPT, include_str!("../assets/failures.js")),
    ("/build.js", SCRIPT, include_str!("../assets/build.js")),
    ("/names.js", SCRIPT, include_str!("../assets/names.js")),
    ("/icon.svg", "image/svg+xml", include_str!("../assets/icon.svg")),
];

/// A static file: its content type and content. The page is at `/`, and its links are relative.
pub fn file(path: &str, mode: Mode) -> Option<(&'static str, Bytes)> {
    if path == "/" {
        return Some((HTML, index(mode)));
    }
    let (_, sort, text) = FILES.iter().find(|(name, _, _)| *name == path)?;
    Some((sort, Bytes::from_static(text.as_bytes())))
}

fn index(mode: Mode) -> Bytes {
    match mode {
        Mode::Dev => Bytes::from_static(INDEX.as_bytes()),
        Mode::Manager => {
            let replace = |html: String, (from, to): &(&str, &str)| html.replace(from, to);
            OF_MANAGER.iter().fold(INDEX.to_owned(), replace).into()
        }
    }
}

/// Whether a `Host` header is local, which prevents DNS rebinding. Any port is allowed, since it may be forwarded.
pub fn is_local(host: &str) -> bool {
    let name = host.rsplit_once(':').filter(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()));
    let name = name.map_or(host, |(name, _)| name);
    name == "127.0.0.1" || name.eq_ignore_ascii_case("localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_local_host_names_are_accepted() {
        for host in ["127.0.0.1", "127.0.0.1:8080", "localhost:1", "LOCALHOST"] {
            assert!(is_local(host), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "evil.example:8080",
            "127.0.0.1.evil.example",
            "localhost.evil.example:80",
            "[::1]:80",
            "localhost:evil",
        ] {
            assert!(!is_local(host), "{host}");
        }
    }

    #[test]
    fn the_page_of_a_manager_differs_in_its_mode_and_names() {
        let html = |mode| {
            let (_, html) = file("/", mode).expect("the page");
            String::from_utf8(html.to_vec()).expect("it is text")
        };
        for (from, to) in OF_MANAGER {
            assert_eq!(INDEX.matches(from).count(), 1, "{from}");
            assert!(html(Mode::Dev).contains(from) && html(Mode::Manager).contains(to), "{to}");
        }
        assert!(file("/nothing", Mode::Manager).is_none());
    }
}
