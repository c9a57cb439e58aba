//! Checks that `Cargo.lock` contains no banned crates and only crates from the default registry.
//!
//! The bans are those of `deny.toml`. cargo-deny may be missing on a fresh machine, so these two rules are
//! also checked here.

use toml::de::{DeTable, DeValue};

use super::{Files, Violation};

const LOCK: &str = "Cargo.lock";
const BANS: &str = "deny.toml";

/// The source of crates from the default registry in a lock file, also if a mirror replaces it.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

pub(super) fn check(files: &Files, violations: &mut Vec<Violation>) {
    let bans = files.text(BANS).map(bans).unwrap_or_default();
    let mut name = "";
    for (number, line) in files.text(LOCK).unwrap_or_default().lines().enumerate() {
        let mut report =
            |what, fix| violations.push(Violation { path: LOCK.into(), line: number + 1, what, fix });
        if let Some(value) = value(line, "name") {
            name = value;
            if let Some((_, reason)) = bans.iter().find(|(banned, _)| banned == name) {
                let fix = format!("`cargo tree --workspace --target all -i {name}` shows the dependents");
                report(format!("`{name}` is banned: {reason}"), fix);
            }
        }
        if let Some(source) = value(line, "source").filter(|source| *source != REGISTRY) {
            report(format!("`{name}` comes from {source}"), "use a release from the default registry".into());
        }
    }
}

/// The value of a line `key = "value"`. cargo writes each key of a lock file on its own line.
fn value<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    line.strip_prefix(key)?.strip_prefix(" = \"")?.strip_suffix('"')
}

/// Names and reasons of the crates banned by `deny.toml`.
fn bans(text: &str) -> Vec<(String, String)> {
    let Ok(root) = DeTable::parse(text) else { return Vec::new() };
    let list = root.get_ref().get("bans").and_then(|bans| bans.get_ref().get("deny"));
    let Some(DeValue::Array(list)) = list.map(toml::Spanned::get_ref) else { return Vec::new() };
    let text = |ban: &DeValue<'_>, key| Some(ban.get(key)?.get_ref().as_str()?.to_owned());
    let pair = |ban: &DeValue<'_>| Some((text(ban, "crate")?, text(ban, "reason").unwrap_or_default()));
    list.iter().filter_map(|ban| pair(ban.get_ref())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn banned_crates_and_other_sources_are_reported() {
        let lock = format!(
            "[[package]]\nname = \"good\"\nsource = \"{REGISTRY}\"\n\n[[package]]\nname = \"ours\"\n\n\
             [[package]]\nname = \"openssl\"\nsource = \"{REGISTRY}\"\n\n\
             [[package]]\nname = \"forked\"\nsource = \"git+https://example.com/forked#1\"\n"
        );
        let deny = "[bans]\ndeny = [{ crate = \"openssl\", reason = \"TLS is rustls\" }]\n";
        let mut violations = Vec::new();
        check(&Files::planted(&[("Cargo.lock", &lock), ("deny.toml", deny)]), &mut violations);
        let reported: Vec<_> = violations.iter().map(ToString::to_string).collect();
        insta::assert_snapshot!(reported.join("\n"), @"
        Cargo.lock:9: `openssl` is banned: TLS is rustls; `cargo tree --workspace --target all -i openssl` shows the dependents
        Cargo.lock:14: `forked` comes from git+https://example.com/forked#1; use a release from the default registry
        ");
    }

    #[test]
    fn the_bans_in_deny_toml_are_parsed() {
        let deny = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../deny.toml")).unwrap();
        assert!(bans(&deny).iter().any(|(name, reason)| name == "aws-lc-sys" && !reason.is_empty()));
    }
}
