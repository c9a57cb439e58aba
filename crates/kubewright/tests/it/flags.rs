//! The command line of an operator.

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
