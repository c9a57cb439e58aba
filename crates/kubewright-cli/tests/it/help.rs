//! What the help says, and where it goes.

use insta::assert_snapshot;

use crate::run::kubewright;

#[test]
fn help_of_kubewright_says_what_it_is_and_what_it_can_do() {
    assert_snapshot!(kubewright("--help"), @"
    exit status 0
    --- stdout
    Build, test and run Kubernetes operators in Rust, with a Kubernetes API server inside

    Usage: kubewright [OPTIONS] <COMMAND>

    Commands:
      apiserver   Run the Kubernetes API server in the foreground, until it is interrupted
      completion  Print the script that completes kubewright's commands in a shell
      create      Add to a project
      delete      Take back what was added to a project
      dev         Run an operator on a cluster inside this program, and rebuild it on each save
      edit        Change how a project is laid out, and what config/default deploys
      envtest     Help tests of operators that were written for Go's envtest
      init        Start an operator: a cargo project with everything that it needs to be tested and
                  deployed
      manifests   Write CRDs, roles and webhook configurations from the compiled operator
      update      Update the scaffold of a project to that of this kubewright, with a three-way merge
      version     Print the version of kubewright, and of the Kubernetes API that it embeds
      help        Print the help of kubewright, or of one of its commands

    Options:
      -h, --help     Print help
      -V, --version  Print version

    Global options:
          --color <WHEN>  When to colour: auto (on a terminal, unless NO_COLOR is set), always or never
      -q, --quiet         Print results and errors only
      -v, --verbose...    Say more; repeat for even more

    Examples:
      # Start an operator in this folder
      kubewright init --domain example.com

      # Add a kind and its controller
      kubewright create api --group shop --version v1 --kind Order

      # Run the operator in this folder, and again on each save
      kubewright dev

      # Start a Kubernetes API server
      kubewright apiserver --port 6443

      # Write the CRDs and roles of the operator in this folder
      kubewright manifests

      # Print the version, and that of the Kubernetes API inside
      kubewright version

      # Complete commands and flags in this shell
      source <(kubewright completion bash)

      # Print what a command does
      kubewright help version
    ");
}

#[test]
fn help_of_version() {
    assert_snapshot!(kubewright("version --help"), @"
    exit status 0
    --- stdout
    Print the version of kubewright, and of the Kubernetes API that it embeds

    Usage: kubewright version [OPTIONS]

    Options:
          --short            Print only the number
      -o, --output <FORMAT>  Print as data [possible values: json, yaml]
      -h, --help             Print help

    Global options:
          --color <WHEN>  When to colour: auto (on a terminal, unless NO_COLOR is set), always or never
      -q, --quiet         Print results and errors only
      -v, --verbose...    Say more; repeat for even more

    Examples:
      # Print the version
      kubewright version

      # Print the number only, for a script
      kubewright version --short

      # Print all that is known of the build, as data
      kubewright version -o json
    ");
}

#[test]
fn help_of_completion_says_how_to_install_it_in_each_shell() {
    assert_snapshot!(kubewright("completion --help"), @r#"
    exit status 0
    --- stdout
    Print the script that completes kubewright's commands in a shell

    Usage: kubewright completion [OPTIONS] <SHELL>

    Arguments:
      <SHELL>  The shell to write for [possible values: bash, zsh, fish, powershell]

    Options:
      -h, --help  Print help

    Global options:
          --color <WHEN>  When to colour: auto (on a terminal, unless NO_COLOR is set), always or never
      -q, --quiet         Print results and errors only
      -v, --verbose...    Say more; repeat for even more

    Examples:
      # bash: complete in this shell; put the line into ~/.bashrc to keep it
      source <(kubewright completion bash)

      # zsh: complete in new shells; `compinit` must run in ~/.zshrc
      kubewright completion zsh > "${fpath[1]}/_kubewright"

      # fish: complete in new shells
      kubewright completion fish > ~/.config/fish/completions/kubewright.fish

      # PowerShell: complete in this shell; put the line into $PROFILE to keep it
      kubewright completion powershell | Out-String | Invoke-Expression
    "#);
}

#[test]
fn help_of_envtest_assets_says_how_to_use_the_folder() {
    assert_snapshot!(kubewright("envtest assets --help"), @r#"
    exit status 0
    --- stdout
    Make a folder for KUBEBUILDER_ASSETS, in which kubewright is kube-apiserver and etcd

    Usage: kubewright envtest assets [OPTIONS] <DIR>

    Arguments:
      <DIR>  The folder; it is made if it is not there

    Options:
          --copy     Write copies instead of links
          --dry-run  Write nothing, only say what would be written
      -h, --help     Print help

    Global options:
          --color <WHEN>  When to colour: auto (on a terminal, unless NO_COLOR is set), always or never
      -q, --quiet         Print results and errors only
      -v, --verbose...    Say more; repeat for even more

    Examples:
      # Make the folder, and use it in this shell
      eval "$(kubewright envtest assets bin/k8s)"

      # Copies, for an image that has no kubewright elsewhere
      kubewright envtest assets --copy bin/k8s

      # See what would be written
      kubewright envtest assets --dry-run bin/k8s
    "#);
}

#[test]
fn help_of_create_webhook() {
    assert_snapshot!(kubewright("create webhook --help"), @"
    exit status 0
    --- stdout
    Add webhooks to a kind: at least one of --defaulting, --programmatic-validation and --conversion

    Usage: kubewright create webhook [OPTIONS]

    Options:
          --group <GROUP>
              Group of the kind, without the domain of the project
          --version <VERSION>
              Version, such as v1 or v1beta1
          --kind <KIND>
              Kind, such as MarkdownView
          --defaulting
              The defaulting webhook, which sets values before an object is stored
          --programmatic-validation
              The validating webhook, which accepts or refuses objects
          --conversion
              The conversion between versions; the hub is --version
          --spoke <VERSIONS>
              Versions that are converted to the hub and back, separated by commas
          --defaulting-path <PATH>
              Path of the defaulting webhook [default: /mutate-GROUP-VERSION-KIND]
          --validation-path <PATH>
              Path of the validating webhook [default: /validate-GROUP-VERSION-KIND]
          --plural <NAME>
              Plural in paths, for a kind of a crate [default: by the rules of English]
          --external-api-path <PATH>
              Rust module with the type of a kind that a crate defines
          --external-api-domain <DOMAIN>
              Domain of the group of such a kind
          --external-api-module <NAME@VERSION>
              Crate to depend on for it
          --project <FOLDER>
              Folder of the project [default: .]
          --dry-run
              Write nothing, and print what would change
          --force
              Replace or remove files even where changes of yours are lost
      -h, --help
              Print help

    Global options:
          --color <WHEN>  When to colour: auto (on a terminal, unless NO_COLOR is set), always or never
      -q, --quiet         Print results and errors only
      -v, --verbose...    Say more; repeat for even more

    Examples:
      # Set defaults and validate objects of a kind
      kubewright create webhook --group shop --version v1 --kind Order --defaulting
      --programmatic-validation

      # Convert v2 to v1 and back
      kubewright create webhook --group shop --version v1 --kind Order --conversion --spoke v2

      # Validate a built-in kind
      kubewright create webhook --group apps --version v1 --kind Deployment --programmatic-validation

      # Choose the path
      kubewright create webhook --group shop --version v1 --kind Order --defaulting --defaulting-path
      /default-order

      # See what would change
      kubewright create webhook --group shop --version v1 --kind Order --defaulting --dry-run
    ");
}

#[test]
fn help_of_delete_webhook() {
    assert_snapshot!(kubewright("delete webhook --help"), @"
    exit status 0
    --- stdout
    Delete webhooks of a kind: those that are named, or all

    Usage: kubewright delete webhook [OPTIONS]

    Options:
          --group <GROUP>            Group of the kind, without the domain of the project
          --version <VERSION>        Version, such as v1 or v1beta1
          --kind <KIND>              Kind, such as MarkdownView
          --defaulting               The defaulting webhook, which sets values before an object is
                                     stored
          --programmatic-validation  The validating webhook, which accepts or refuses objects
          --conversion               The conversion between versions; the hub is --version
          --spoke <VERSIONS>         Versions that are no longer converted, separated by commas
                                     [default: all]
          --project <FOLDER>         Folder of the project [default: .]
          --dry-run                  Write nothing, and print what would change
          --force                    Replace or remove files even where changes of yours are lost
      -h, --help                     Print help

    Global options:
          --color <WHEN>  When to colour: auto (on a terminal, unless NO_COLOR is set), always or never
      -q, --quiet         Print results and errors only
      -v, --verbose...    Say more; repeat for even more

    Examples:
      # Delete all webhooks of a kind
      kubewright delete webhook --group shop --version v1 --kind Order

      # Delete the validation only
      kubewright delete webhook --group shop --version v1 --kind Order --programmatic-validation

      # Delete the conversion of one version
      kubewright delete webhook --group shop --version v1 --kind Order --conversion --spoke v2
    ");
}

#[test]
fn help_of_edit() {
    assert_snapshot!(kubewright("edit --help"), @"
    exit status 0
    --- stdout
    Change how a project is laid out, and what config/default deploys

    Usage: kubewright edit [OPTIONS]
           kubewright edit <COMMAND>

    Commands:
      api  Change the storage version of a kind

    Options:
          --multigroup[=<BOOL>]
              Give each group of kinds a folder of its own, or not

              [possible values: true, false]

          --namespaced[=<BOOL>]
              Watch the operator's own namespace only, with Roles instead of ClusterRoles, or all
              namespaces

              [possible values: true, false]

          --prometheus[=<BOOL>]
              Deploy the ServiceMonitor of config/prometheus, or not

              [possible values: true, false]

          --network-policy[=<BOOL>]
              Deploy the NetworkPolicy of config/network-policy, or not

              [possible values: true, false]

          --webhook-certs <MODE>
              Where the certificate of the webhook server comes from

              Possible values:
              - self-signed:  The manager issues it and injects its CA
              - cert-manager: cert-manager issues it and injects its CA
              - files:        The Secret webhook-server-cert, which you provide
              - none:         None: webhooks are served without TLS, behind a proxy

          --project <FOLDER>
              Folder of the project

              [default: .]

          --dry-run
              Write nothing, and print what would change

          --force
              Replace or remove files even where changes of yours are lost

      -h, --help
              Print help (see a summary with '-h')

    Global options:
          --color <WHEN>
              When to colour: auto (on a terminal, unless NO_COLOR is set), always or never

      -q, --quiet
              Print results and errors only

      -v, --verbose...
              Say more; repeat for even more

    Examples:
      # Give each group a folder, and move the files there
      kubewright edit --multigroup

      # Watch the operator's own namespace only
      kubewright edit --namespaced

      # Have Prometheus read the metrics
      kubewright edit --prometheus

      # Store objects in another version
      kubewright edit api --group shop --kind Order --storage-version v2

      # Have cert-manager issue the certificate of webhooks
      kubewright edit --webhook-certs cert-manager

      # See what would change
      kubewright edit --network-policy --dry-run
    ");
}

#[test]
fn help_of_help() {
    assert_snapshot!(kubewright("help --help"), @"
    exit status 0
    --- stdout
    Print the help of kubewright, or of one of its commands

    Usage: kubewright help [OPTIONS] [COMMAND]...

    Arguments:
      [COMMAND]...  The command, such as `version`

    Options:
      -h, --help  Print help

    Global options:
          --color <WHEN>  When to colour: auto (on a terminal, unless NO_COLOR is set), always or never
      -q, --quiet         Print results and errors only
      -v, --verbose...    Say more; repeat for even more

    Examples:
      # Print what kubewright can do
      kubewright help

      # Print what a command does
      kubewright help completion
    ");
}

#[test]
fn the_command_help_prints_the_same_as_the_flag() {
    assert_eq!(kubewright("help").result(), kubewright("--help").result());
    assert_eq!(kubewright("help version").result(), kubewright("version --help").result());
    assert_eq!(kubewright("help completion").result(), kubewright("completion --help").result());
    assert_eq!(kubewright("help help").result(), kubewright("help --help").result());
}

#[test]
fn help_for_an_unknown_command_is_a_usage_error() {
    assert_snapshot!(kubewright("help verison"), @"
    exit status 2
    --- stderr
    error: unrecognized subcommand 'verison'

      tip: a similar subcommand exists: 'version'

    Usage: kubewright [OPTIONS] <COMMAND>

    For more information, try '--help'.
    ");
}

#[test]
fn no_arguments_at_all_print_the_help_as_an_error() {
    let run = kubewright("");
    assert_eq!((run.status, run.stdout.as_str()), (2, ""));
    assert_eq!(run.stderr, kubewright("-h").result());
}
