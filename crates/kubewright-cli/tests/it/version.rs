//! Version output.

use insta::assert_snapshot;

use crate::run::kubewright;

#[test]
fn version_prints_kubewright_and_kubernetes_versions() {
    assert_snapshot!(kubewright("version"), @"
    exit status 0
    --- stdout
    kubewright [VERSION]
    Kubernetes API: v1.36
    ");
}

#[test]
fn short_prints_only_the_number() {
    assert_eq!(kubewright("version --short").result(), concat!(env!("CARGO_PKG_VERSION"), "\n"));
}

#[test]
fn the_flag_prints_the_first_line_of_the_command() {
    let first = kubewright("version").result().lines().next().map(|line| format!("{line}\n"));
    assert_eq!(Some(kubewright("--version").result()), first);
    assert_eq!(Some(kubewright("-V").result()), first);
}

#[test]
fn verbose_version_adds_platform_and_commit() {
    let text = kubewright("version -v").result();
    let commit = option_env!("KUBEWRIGHT_GIT_COMMIT").unwrap_or("unknown");
    assert!(text.starts_with(&kubewright("version").result()), "{text}");
    assert!(text.contains("\nPlatform: "), "{text}");
    assert!(text.ends_with(&format!("\nCommit: {commit}\n")), "{text}");
}

#[test]
fn json_and_yaml_have_the_same_fields() {
    let json = kubewright("version -o json").result();
    let yaml = kubewright("version --output yaml").result();
    let json: serde_json::Value = serde_json::from_str(&json).expect("valid JSON");
    assert_eq!(json["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(json["kubernetesVersion"], "v1.36");
    assert_eq!(
        json.get("gitCommit").and_then(|commit| commit.as_str()),
        option_env!("KUBEWRIGHT_GIT_COMMIT")
    );

    let fields = json.as_object().expect("an object");
    let lines: Vec<String> = fields.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    assert_eq!(yaml.lines().collect::<Vec<_>>(), lines);
}

#[test]
fn short_and_output_conflict() {
    assert_snapshot!(kubewright("version --short -o json"), @"
    exit status 2
    --- stderr
    error: the argument '--short' cannot be used with '--output <FORMAT>'

    Usage: kubewright version --short

    For more information, try '--help'.
    ");
}

#[test]
fn an_unknown_format_lists_the_known_ones() {
    assert_snapshot!(kubewright("version -o wide"), @"
    exit status 2
    --- stderr
    error: invalid value 'wide' for '--output <FORMAT>'
      [possible values: json, yaml]

    For more information, try '--help'.
    ");
}
