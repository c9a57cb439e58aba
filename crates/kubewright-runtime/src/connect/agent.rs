//! The user agent of this client.
//!
//! It has client-go's form, followed by kubewright's version. It appears in the API server's audit log, and in the
//! managed fields of requests without a field manager.

/// `NAME/VERSION (OS/ARCH) kubewright/VERSION`, with Go's names for OS and architecture.
///
/// ```
/// let agent = kubewright_runtime::connect::user_agent("markdown-view", "0.3.0");
/// # #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
/// assert!(agent.starts_with("markdown-view/0.3.0 (linux/amd64) kubewright/"));
/// ```
pub fn user_agent(name: &str, version: &str) -> String {
    let (os, arch) = (go_os(std::env::consts::OS), go_arch(std::env::consts::ARCH));
    let (name, version) = (token(name), token(version));
    format!("{name}/{version} ({os}/{arch}) kubewright/{}", env!("CARGO_PKG_VERSION"))
}

/// The file name of this program, as in client-go.
pub(super) fn program() -> String {
    let path = std::env::args_os().next().map(std::path::PathBuf::from);
    let name = path.as_deref().and_then(std::path::Path::file_name);
    name.map_or_else(|| "unknown".to_owned(), |name| name.to_string_lossy().into_owned())
}

/// Replaces characters that are not valid in a product token by `_`.
fn token(text: &str) -> String {
    let kept = |c: char| if c.is_ascii_graphic() && !matches!(c, '/' | '(' | ')') { c } else { '_' };
    if text.is_empty() { "unknown".to_owned() } else { text.chars().map(kept).collect() }
}

fn go_os(os: &str) -> &str {
    match os {
        "macos" => "darwin",
        same => same,
    }
}

fn go_arch(arch: &str) -> &str {
    match arch {
        "x86_64" => "amd64",
        "x86" => "386",
        "aarch64" => "arm64",
        "powerpc64" => "ppc64le",
        "loongarch64" => "loong64",
        same => same,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_agent_is_always_a_valid_header() {
        for (name, version) in [("a", "1"), ("", ""), ("with space/and\nline", "1.0 (β)"), ("ü", "v1")] {
            let agent = user_agent(name, version);
            assert!(http::HeaderValue::from_str(&agent).is_ok(), "{agent}");
            assert_eq!(agent.split(' ').count(), 3, "{agent}");
        }
        assert!(!program().is_empty());
    }

    #[test]
    fn systems_are_named_as_go_names_them() {
        assert_eq!((go_os("macos"), go_os("linux")), ("darwin", "linux"));
        assert_eq!((go_arch("x86_64"), go_arch("aarch64"), go_arch("s390x")), ("amd64", "arm64", "s390x"));
    }
}
