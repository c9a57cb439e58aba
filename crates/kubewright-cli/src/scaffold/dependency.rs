//! The kubewright dependency of a project.
//!
//! Invariant: a path is relative to the project, so that no generated file has an absolute path.

use std::fs;
use std::path::{Component, Path, PathBuf};

use serde_json::{Value, json};

/// The repository of kubewright.
pub(crate) const REPOSITORY: &str = env!("CARGO_PKG_REPOSITORY");

/// The kubewright dependency of a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Dependency {
    Version(String),
    Git {
        url: String,
        /// A commit.
        rev: Option<String>,
    },
    /// A local checkout, relative to the project.
    Path(String),
}

impl Default for Dependency {
    fn default() -> Self {
        Self::Version(env!("CARGO_PKG_VERSION").to_owned())
    }
}

impl Dependency {
    /// The kubewright that this binary was built from, for a project in a directory.
    pub(crate) fn of_this_build(project: &Path) -> Self {
        let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
        let build = Build {
            sources: Path::new(env!("CARGO_MANIFEST_DIR")).to_owned(),
            cargo_home: home.or_else(|| Some(std::env::home_dir()?.join(".cargo"))),
            is_release: option_env!("KUBEWRIGHT_RELEASE").is_some_and(|value| !value.is_empty()),
            commit: option_env!("KUBEWRIGHT_GIT_COMMIT"),
        };
        build.dependency(project)
    }

    /// A checkout, for a project in a directory.
    pub(crate) fn checkout(checkout: &Path, project: &Path) -> Self {
        Self::Path(relative(project, checkout))
    }

    /// Values for the templates.
    pub(super) fn values(&self) -> Value {
        let quoted = |text: &str| Value::from(text).to_string();
        let source = |name: &str| match self {
            Self::Version(version) => format!("version = {}", quoted(version)),
            Self::Git { url, rev } => {
                let rev = rev.as_ref().map(|rev| format!(", rev = {}", quoted(rev)));
                format!("git = {}{}", quoted(url), rev.unwrap_or_default())
            }
            Self::Path(root) => format!("path = {}", quoted(&format!("{root}/crates/{name}"))),
        };
        let (path, install) = match self {
            Self::Version(version) => (None, Some(format!("--version {version}"))),
            Self::Git { url, rev } => {
                let rev = rev.as_ref().map(|rev| format!(" --rev {rev}"));
                (None, Some(format!("--git {url}{}", rev.unwrap_or_default())))
            }
            Self::Path(root) => (Some(root), None),
        };
        let kubewright = match self {
            Self::Version(version) => quoted(version),
            _ => format!("{{ {} }}", source("kubewright")),
        };
        // With `cluster`, Deployments create Pods in tests.
        let envtest = format!("{{ {}, features = [\"cluster\"] }}", source("kubewright-envtest"));
        json!({ "kubewright": kubewright, "envtest": envtest, "path": path, "install": install })
    }

    /// Reads the dependency from a Cargo.toml that [`values`](Self::values) were rendered into. `None` if it is a
    /// version.
    pub(super) fn of_manifest(manifest: &str) -> Option<Self> {
        let line = manifest.lines().find(|line| line.starts_with("kubewright = "))?;
        let table: toml::Table = toml::from_str(line).ok()?;
        let text = |key: &str| Some(table.get("kubewright")?.get(key)?.as_str()?.to_owned());
        if let Some(path) = text("path") {
            return Some(Self::Path(path.strip_suffix("/crates/kubewright")?.to_owned()));
        }
        Some(Self::Git { url: text("git")?, rev: text("rev") })
    }
}

/// How and where this binary was built.
struct Build {
    /// The directory of this package at build time.
    sources: PathBuf,
    cargo_home: Option<PathBuf>,
    /// Whether the release workflow built it. Its version is in the registry.
    is_release: bool,
    commit: Option<&'static str>,
}

impl Build {
    /// The library must be of the same version as this binary, because templates and manifests depend on both. A checkout
    /// has it, as long as it exists, whether its commit is published or not.
    fn dependency(&self, project: &Path) -> Dependency {
        // A package of a registry is unpacked into a directory that is named after its version.
        if self.is_release || !self.sources.ends_with("crates/kubewright-cli") {
            return Dependency::default();
        }
        let checkout = self.sources.ancestors().nth(2).unwrap_or(&self.sources);
        // `cargo install --git` compiles in a checkout of cargo, which cargo removes.
        if !self.is_of_cargo(checkout) && checkout.join("crates/kubewright/Cargo.toml").is_file() {
            return Dependency::checkout(checkout, project);
        }
        let rev = self.commit.map(str::to_owned).or_else(|| self.cached_commit(checkout));
        Dependency::Git { url: REPOSITORY.to_owned(), rev }
    }

    fn is_of_cargo(&self, path: &Path) -> bool {
        let Some(home) = &self.cargo_home else { return false };
        path.starts_with(home) || fs::canonicalize(home).is_ok_and(|home| path.starts_with(home))
    }

    /// The commit of a checkout of cargo: `git/checkouts/kubewright-0123456789abcdef/<commit>`.
    fn cached_commit(&self, checkout: &Path) -> Option<String> {
        let commit = checkout.file_name()?.to_str()?;
        let is_cached = self.is_of_cargo(checkout) && checkout.ancestors().nth(2)?.ends_with("git/checkouts");
        let is_hash = commit.len() >= 7 && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
        (is_cached && is_hash).then(|| commit.to_owned())
    }
}

/// The path from a directory, which may not exist yet, to an existing one. Symbolic links are resolved: `..` is the
/// parent of the real directory. Without a common root, the result is absolute.
fn relative(from: &Path, to: &Path) -> String {
    let to = fs::canonicalize(to).unwrap_or_else(|_| to.to_owned());
    let from = resolved(from);
    let common = from.components().zip(to.components()).take_while(|(from, to)| from == to).count();
    if common == 0 {
        return to.display().to_string();
    }
    let up = from.components().skip(common).map(|_| Component::ParentDir);
    let names: Vec<_> =
        up.chain(to.components().skip(common)).map(|it| it.as_os_str().to_string_lossy()).collect();
    if names.is_empty() { ".".to_owned() } else { names.join("/") }
}

/// Resolves the part of a path that exists.
fn resolved(path: &Path) -> PathBuf {
    for above in path.ancestors() {
        if let (Ok(real), Ok(rest)) = (fs::canonicalize(above), path.strip_prefix(above)) {
            return real.join(rest);
        }
    }
    path.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build(sources: &Path, cargo_home: &Path) -> Build {
        Build {
            sources: sources.to_owned(),
            cargo_home: Some(cargo_home.to_owned()),
            is_release: false,
            commit: None,
        }
    }

    fn git(rev: Option<&str>) -> Dependency {
        Dependency::Git { url: REPOSITORY.to_owned(), rev: rev.map(str::to_owned) }
    }

    /// A checkout in a directory. Returns the directory of this package in it.
    fn checkout(folder: &Path) -> PathBuf {
        for name in ["kubewright", "kubewright-cli"] {
            fs::create_dir_all(folder.join("crates").join(name)).unwrap();
            fs::write(folder.join("crates").join(name).join("Cargo.toml"), "").unwrap();
        }
        folder.join("crates/kubewright-cli")
    }

    #[test]
    fn a_build_in_a_checkout_depends_on_the_checkout_as_long_as_it_exists() {
        let folder = tempfile::tempdir().unwrap();
        let (home, project) = (folder.path().join("home"), folder.path().join("work/shop"));
        let sources = checkout(&folder.path().join("kubewright"));
        let built = build(&sources, &home);
        let with_commit = Build { commit: Some("0123456789"), ..build(&sources, &home) };
        let path = Dependency::Path("../../kubewright".into());
        assert_eq!(built.dependency(&project), path);
        assert_eq!(with_commit.dependency(&project), path);
        fs::remove_dir_all(folder.path().join("kubewright")).unwrap();
        assert_eq!(built.dependency(&project), git(None));
        assert_eq!(with_commit.dependency(&project), git(Some("0123456789")));
    }

    #[test]
    fn a_release_depends_on_its_version() {
        let folder = tempfile::tempdir().unwrap();
        let sources = checkout(&folder.path().join("kubewright"));
        let released = Build { is_release: true, ..build(&sources, &folder.path().join("home")) };
        assert_eq!(released.dependency(folder.path()), Dependency::default());
    }

    #[test]
    fn a_build_in_the_cache_of_cargo_depends_on_its_commit_or_version() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("home");
        let sources = checkout(&home.join("git/checkouts/kubewright-0123456789abcdef/5deda82"));
        assert_eq!(build(&sources, &home).dependency(folder.path()), git(Some("5deda82")));
        let sources = home.join("registry/src/index-0123456789abcdef/kubewright-cli-0.1.0");
        assert_eq!(build(&sources, &home).dependency(folder.path()), Dependency::default());
    }

    #[test]
    fn a_checkout_is_relative_to_the_project() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("a/kubewright")).unwrap();
        let from =
            |project: &str| relative(&folder.path().join(project), &folder.path().join("a/kubewright"));
        assert_eq!(from("shop"), "../a/kubewright");
        assert_eq!(from("a/b/shop"), "../../kubewright");
        assert_eq!(from("a/kubewright/examples/shop"), "../..");
        assert_eq!(from("a"), "kubewright");
        assert_eq!(from("a/kubewright"), ".");
    }

    #[cfg(unix)]
    #[test]
    fn symbolic_links_are_resolved() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("real/deep")).unwrap();
        fs::create_dir_all(folder.path().join("kubewright")).unwrap();
        std::os::unix::fs::symlink(folder.path().join("real/deep"), folder.path().join("link")).unwrap();
        let found = relative(&folder.path().join("link/shop"), &folder.path().join("kubewright"));
        assert_eq!(found, "../../../kubewright");
    }
}
