//! Wrong arguments: status 2, the reason on standard error, nothing on standard output.

use insta::assert_snapshot;

use crate::run::kubewright;

#[test]
fn an_unknown_command_suggests_a_similar_one() {
    assert_snapshot!(kubewright("verison"), @"
    exit status 2
    --- stderr
    error: unrecognized subcommand 'verison'

      tip: a similar subcommand exists: 'version'

    Usage: kubewright [OPTIONS] <COMMAND>

    For more information, try '--help'.
    ");
}

#[test]
fn an_unknown_flag_suggests_a_similar_one() {
    assert_snapshot!(kubewright("version --sort"), @"
    exit status 2
    --- stderr
    error: unexpected argument '--sort' found

      tip: a similar argument exists: '--short'

    Usage: kubewright version --short

    For more information, try '--help'.
    ");
}

#[test]
fn a_missing_command_lists_all_commands() {
    assert_snapshot!(kubewright("--quiet"), @r"
    exit status 2
    --- stderr
    error: 'kubewright' requires a subcommand but one was not provided
      [subcommands: apiserver, build-installer, bundle, chart, completion, create, delete, deploy, dev, edit, envtest, image, init, manifests, migrate, scorecard, undeploy, update, version, help]

    Usage: kubewright [OPTIONS] <COMMAND>

    For more information, try '--help'.
    ");
}

#[test]
fn a_missing_shell_is_an_error() {
    assert_snapshot!(kubewright("completion"), @"
    exit status 2
    --- stderr
    error: the following required arguments were not provided:
      <SHELL>

    Usage: kubewright completion <SHELL>

    For more information, try '--help'.
    ");
}

#[test]
fn an_unknown_shell_lists_the_known_ones() {
    assert_snapshot!(kubewright("completion csh"), @"
    exit status 2
    --- stderr
    error: invalid value 'csh' for '<SHELL>'
      [possible values: bash, zsh, fish, powershell]

      tip: a similar value exists: 'zsh'

    For more information, try '--help'.
    ");
}

#[test]
fn quiet_and_verbose_conflict() {
    assert_snapshot!(kubewright("-q version -v"), @"
    exit status 2
    --- stderr
    error: the argument '--quiet' cannot be used with '--verbose'

    Usage: kubewright [OPTIONS] <COMMAND>

    For more information, try '--help'.
    ");
}
