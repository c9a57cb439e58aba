//! The command line of an operator, and its reference, docs/reference/flags.md.
//!
//! `UPDATE_DOCS=1 cargo test -p kubewright flags` writes the page.

use std::fmt::Write as _;
use std::path::Path;

use kubewright::clap;
use kubewright::{FlagsError, Operator};

fn operator() -> Operator {
    Operator::new("guestbook", "1.2.3").about("Keeps guestbooks")
}

fn answer(arguments: &[&str]) -> FlagsError {
    operator().parse([&["guestbook"], arguments].concat()).expect_err("parsing does not return flags")
}

fn error(argument: &str) -> String {
    // The remaining lines are the same for all errors.
    first_line(&[argument])
}

#[test]
fn the_help_has_every_flag_and_examples() {
    let help = answer(&["--help"]);
    assert_eq!(help.exit_code(), 0);
    insta::assert_snapshot!(help);
}

#[test]
fn the_version_is_that_of_the_operator() {
    let version = answer(&["--version"]);
    assert_eq!((version.exit_code(), version.to_string().as_str()), (0, "guestbook 1.2.3\n"));
}

#[test]
fn a_wrong_value_says_what_to_write() {
    let errors = [
        "--metrics-bind-address=8443",
        "--metrics-secure=maybe",
        "--leader-election-lease-duration=15",
        "--leader-election-retry-period=-2s",
        "--graceful-shutdown-timeout=soon",
        "--namespace=Team_A",
        "--log-level=info,kube=wran",
        "--log-format=xml",
        "--zap-log-level=loud",
        "--zap-encoder=xml",
        "--leader-elekt",
        "manager",
    ]
    .map(error)
    .join("\n");
    insta::assert_snapshot!(errors);
}

#[test]
fn a_bool_takes_its_value_after_an_equals_sign_only() {
    assert!(operator().parse(["guestbook", "--leader-elect", "--metrics-secure"]).is_ok());
    assert!(operator().parse(["guestbook", "--leader-elect=f", "--metrics-secure=0"]).is_ok());
    let error = first_line(&["--leader-elect", "false"]);
    assert_eq!(error, "error: unexpected argument 'false' found", "as in Go");
}

#[test]
fn two_names_of_one_flag_conflict() {
    for flags in [["--log-level=debug", "--zap-log-level=debug"], ["--log-format=json", "--zap-encoder=json"]]
    {
        let error = first_line(&flags);
        assert!(error.contains("cannot be used with"), "{error}");
    }
}

#[test]
fn unsupported_features_have_no_flag() {
    assert_eq!(first_line(&["--enable-http2"]), "error: unexpected argument '--enable-http2' found");
}

fn first_line(arguments: &[&str]) -> String {
    let error = answer(arguments);
    assert_eq!(error.exit_code(), 2, "{error}");
    error.to_string().lines().next().unwrap_or_default().to_owned()
}

#[test]
fn a_program_with_its_own_flags_keeps_its_description() {
    /// Paints guestbooks
    #[derive(Debug, clap::Parser)]
    struct Cli {
        /// The colour to paint them in
        #[arg(long)]
        colour: String,
        #[command(flatten)]
        flags: kubewright::Flags,
    }

    let help = <Cli as clap::CommandFactory>::command().render_help().to_string();
    assert!(help.starts_with("Paints guestbooks\n"), "{help}");
    assert!(help.contains("--leader-elect[=<BOOL>]"), "{help}");
    let cli = <Cli as clap::Parser>::parse_from(["painter", "--leader-elect", "--colour=red"]);
    assert_eq!(cli.colour, "red");
    assert!(format!("{:?}", cli.flags).contains("leader_elect: true"));
}

/// A cell of a Markdown table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "&lt;")
}

#[test]
fn the_reference_of_flags_is_the_definition_of_the_flags() {
    let command = <kubewright::Flags as clap::Args>::augment_args(clap::Command::new("operator"));
    let mut page = "# Flags of an operator\n\nEvery operator has these flags, from the definition in the code. Names and defaults are \
                    those of kubebuilder's scaffold. [Flags of your own](../cookbook/flags.md) adds others.\n"
        .to_owned();
    let (other, listed): (Vec<_>, Vec<_>) = command.get_arguments().partition(|flag| flag.is_hide_set());
    let mut heading = None;
    for flag in &listed {
        if heading != Some(flag.get_help_heading()) {
            heading = Some(flag.get_help_heading());
            let title = flag.get_help_heading().unwrap_or("Other");
            write!(page, "\n## {title}\n\n| flag | default | |\n|---|---|---|\n").unwrap();
        }
        let name = flag.get_long().expect("every flag has a name");
        let value = flag.get_value_names().unwrap_or_default().first();
        let value = value.map(|value| format!("={value}")).unwrap_or_default();
        let default: Vec<_> = flag.get_default_values().iter().map(|it| it.to_string_lossy()).collect();
        let default = if default.is_empty() { String::new() } else { format!("`{}`", default.join(",")) };
        let help = flag.get_help().map(ToString::to_string).unwrap_or_default();
        writeln!(page, "| `--{name}{value}` | {default} | {} |", cell(&help)).unwrap();
    }
    let other: Vec<_> =
        other.iter().filter_map(|flag| flag.get_long()).map(|name| format!("`--{name}`")).collect();
    assert!(!other.is_empty() && listed.len() > 25, "{} flags, {other:?}", listed.len());
    write!(
        page,
        "\n## Other names\n\nFor manifests of kubebuilder, an operator also accepts {}.\n",
        other.join(", ")
    )
    .unwrap();

    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/flags.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(written, page, "run `UPDATE_DOCS=1 cargo test -p kubewright flags`");
}
