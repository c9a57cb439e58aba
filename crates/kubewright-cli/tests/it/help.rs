//! Help output.

use insta::assert_snapshot;

use crate::run::kubewright;

#[test]
fn help_of_kubewright() {
    assert_snapshot!(kubewright("--help"), @"
    exit status 0
    --- stdout
    Build, test and run Kubernetes operators in Rust, with an embedded Kubernetes API server

    Usage: kubewright [OPTIONS] <COMMAND>

    Commands:
      apiserver        Run the Kubernetes API server in the foreground
      build-installer  Generate dist/install.yaml with the CRDs and the deployment
      bundle           Generate an OLM bundle in bundle/
      chart            Generate a Helm chart in dist/chart
      completion       Print a shell completion script
      create           Scaffold a Kubernetes API or webhook
      delete           Delete a Kubernetes API or webhook
      deploy           Build and deploy the operator, and wait until it is available
      dev              Run an operator on an embedded cluster, and rebuild it on each save
      edit             Update the project configuration
      envtest          Prepare assets for Go's envtest
      image            Build container images without Docker
      init             Initialize a new project
      manifests        Generate CRDs, RBAC rules and webhook configurations
      migrate          Migrate stored custom resources to the storage version
      scorecard        Check an OLM bundle with Operator SDK's tests, without a cluster
      undeploy         Remove the operator from a cluster; CRDs that have objects are kept
      update           Update the project to the current scaffold with a three-way merge
      version          Print the kubewright version and the embedded Kubernetes API version
      help             Print help for kubewright or a command

    Options:
      -h, --help     Print help
      -V, --version  Print version

    Global options:
          --color <WHEN>  Use color: auto (on a terminal, unless NO_COLOR is set), always or never
      -q, --quiet         Print results and errors only
      -v, --verbose...    Increase verbosity (repeatable)

    Examples:
      # Create a project in the current directory
      kubewright init --domain example.com

      # Add a kind and its controller
      kubewright create api --group shop --version v1 --kind Order

      # Run the operator, and rebuild it on each save
      kubewright dev

      # Build, push and deploy
      kubewright deploy --tag registry.example.com/shop:v1

      # Start a Kubernetes API server
      kubewright apiserver --port 6443

      # Generate CRDs and RBAC rules
      kubewright manifests

      # Print version information
      kubewright version

      # Enable shell completion
      source <(kubewright completion bash)

      # Print help for a command
      kubewright help version
    ");
}

#[test]
fn help_of_version() {
    assert_snapshot!(kubewright("version --help"), @"
    exit status 0
    --- stdout
    Print the kubewright version and the embedded Kubernetes API version

    Usage: kubewright version [OPTIONS]

    Options:
          --short            Print only the version number
      -o, --output <FORMAT>  Output format [possible values: json, yaml]
      -h, --help             Print help

    Global options:
          --color <WHEN>  Use color: auto (on a terminal, unless NO_COLOR is set), always or never
      -q, --quiet         Print results and errors only
      -v, --verbose...    Increase verbosity (repeatable)

    Examples:
      # Print the version
      kubewright version

      # Print only the version number
      kubewright version --short

      # Print build information as JSON
      kubewright version -o json
    ");
}

#[test]
fn help_of_completion() {
    assert_snapshot!(kubewright("completion --help"), @r#"
    exit status 0
    --- stdout
    Print a shell completion script

    Usage: kubewright completion [OPTIONS] <SHELL>

    Arguments:
      <SHELL>  Shell to print the script for [possible values: bash, zsh, fish, powershell]

    Options:
      -h, --help  Print help

    Global options:
          --color <WHEN>  Use color: auto (on a terminal, unless NO_COLOR is set), always or never
      -q, --quiet         Print results and errors only
      -v, --verbose...    Increase verbosity (repeatable)

    Examples:
      # bash: enable completion in this shell; add the line to ~/.bashrc to keep it
      source <(kubewright completion bash)

      # zsh: enable completion in new shells; ~/.zshrc must run `compinit`
      kubewright completion zsh > "${fpath[1]}/_kubewright"

      # fish: enable completion in new shells
      kubewright completion fish > ~/.config/fish/completions/kubewright.fish

      # PowerShell: enable completion in this shell; add it to $PROFILE to keep it
      kubewright completion powershell | Out-String | Invoke-Expression
    "#);
}

#[test]
fn help_of_envtest_assets() {
    assert_snapshot!(kubewright("envtest assets --help"), @r#"
    exit status 0
    --- stdout
    Create a KUBEBUILDER_ASSETS directory with kubewright as kube-apiserver and etcd

    Usage: kubewright envtest assets [OPTIONS] <DIR>

    Arguments:
      <DIR>  Directory to create or update

    Options:
          --copy     Write copies instead of symlinks
          --dry-run  Print what would be written
      -h, --help     Print help

    Global options:
          --color <WHEN>  Use color: auto (on a terminal, unless NO_COLOR is set), always or never
      -q, --quiet         Print results and errors only
      -v, --verbose...    Increase verbosity (repeatable)

    Examples:
      # Create the directory and use it in this shell
      eval "$(kubewright envtest assets bin/k8s)"

      # Write copies, for container images
      kubewright envtest assets --copy bin/k8s

      # Preview the changes
      kubewright envtest assets --dry-run bin/k8s
    "#);
}

#[test]
fn help_of_create_webhook() {
    assert_snapshot!(kubewright("create webhook --help"), @r"
    exit status 0
    --- stdout
    Scaffold webhooks: at least one of --defaulting, --programmatic-validation and --conversion

    Usage: kubewright create webhook [OPTIONS]

    Options:
          --group <GROUP>
              API group, without the project's domain
          --version <VERSION>
              API version, such as v1 or v1beta1
          --kind <KIND>
              Kind, such as MarkdownView
          --defaulting
              Defaulting webhook
          --programmatic-validation
              Validating webhook
          --conversion
              Conversion webhook; --version is the hub
          --spoke <VERSIONS>
              Spoke versions of the conversion, comma-separated
          --defaulting-path <PATH>
              Path of the defaulting webhook [default: /mutate-GROUP-VERSION-KIND]
          --validation-path <PATH>
              Path of the validating webhook [default: /validate-GROUP-VERSION-KIND]
          --plural <NAME>
              Plural resource name of an external kind [default: derived from the kind]
          --external-api-path <PATH>
              Rust module of an external type, defined in another crate
          --external-api-domain <DOMAIN>
              Domain of the external type's API group
          --external-api-module <NAME@VERSION>
              Crate that defines the external type
          --project <DIR>
              Project directory [default: .]
          --dry-run
              Print the changes without writing them
          --force
              Overwrite or remove files that you changed
      -h, --help
              Print help

    Global options:
          --color <WHEN>  Use color: auto (on a terminal, unless NO_COLOR is set), always or never
      -q, --quiet         Print results and errors only
      -v, --verbose...    Increase verbosity (repeatable)

    Examples:
      # Add a defaulting and a validating webhook
      kubewright create webhook --group shop --version v1 --kind Order \
          --defaulting --programmatic-validation

      # Add conversion between v1 (hub) and v2
      kubewright create webhook --group shop --version v1 --kind Order \
          --conversion --spoke v2

      # Validate a built-in kind
      kubewright create webhook --group apps --version v1 --kind Deployment \
          --programmatic-validation

      # Set a custom path
      kubewright create webhook --group shop --version v1 --kind Order \
          --defaulting --defaulting-path /default-order

      # Preview the changes
      kubewright create webhook --group shop --version v1 --kind Order \
          --defaulting --dry-run
    ");
}

#[test]
fn help_of_delete_webhook() {
    assert_snapshot!(kubewright("delete webhook --help"), @r"
    exit status 0
    --- stdout
    Delete the selected webhooks of a kind, or all

    Usage: kubewright delete webhook [OPTIONS]

    Options:
          --group <GROUP>            API group, without the project's domain
          --version <VERSION>        API version, such as v1 or v1beta1
          --kind <KIND>              Kind, such as MarkdownView
          --defaulting               Defaulting webhook
          --programmatic-validation  Validating webhook
          --conversion               Conversion webhook; --version is the hub
          --spoke <VERSIONS>         Spoke versions to remove, comma-separated [default: all]
          --project <DIR>            Project directory [default: .]
          --kubeconfig <FILE>        Kubeconfig of a cluster whose CRD is changed too
          --context <NAME>           Kubeconfig context of that cluster
          --dry-run                  Print the changes without writing them
          --force                    Overwrite or remove files that you changed
      -h, --help                     Print help

    Global options:
          --color <WHEN>  Use color: auto (on a terminal, unless NO_COLOR is set), always or never
      -q, --quiet         Print results and errors only
      -v, --verbose...    Increase verbosity (repeatable)

    Examples:
      # Delete all webhooks of a kind
      kubewright delete webhook --group shop --version v1 --kind Order

      # Delete only the validating webhook
      kubewright delete webhook --group shop --version v1 --kind Order \
          --programmatic-validation

      # Remove one version from the conversion
      kubewright delete webhook --group shop --version v1 --kind Order \
          --conversion --spoke v2

      # Remove the conversion also from the CRD in a cluster
      kubewright delete webhook --group shop --version v1 --kind Order \
          --conversion --context staging
    ");
}

#[test]
fn help_of_edit() {
    assert_snapshot!(kubewright("edit --help"), @"
    exit status 0
    --- stdout
    Update the project configuration

    Usage: kubewright edit [OPTIONS]
           kubewright edit <COMMAND>

    Commands:
      api  Change the storage version of a kind

    Options:
          --multigroup[=<BOOL>]
              Use one directory per API group

              [possible values: true, false]

          --namespaced[=<BOOL>]
              Watch only the operator's namespace, with Roles instead of ClusterRoles

              [possible values: true, false]

          --prometheus[=<BOOL>]
              Deploy the ServiceMonitor in config/prometheus

              [possible values: true, false]

          --network-policy[=<BOOL>]
              Deploy the NetworkPolicy in config/network-policy

              [possible values: true, false]

          --webhook-certs <MODE>
              Source of the webhook serving certificate

              Possible values:
              - self-signed:  Issued by the manager, which injects its CA
              - cert-manager: Issued by cert-manager, which injects its CA
              - files:        Mounted from the Secret webhook-server-cert, which you create
              - none:         No TLS; webhooks are served behind a proxy

          --project <DIR>
              Project directory

              [default: .]

          --dry-run
              Print the changes without writing them

          --force
              Overwrite or remove files that you changed

      -h, --help
              Print help (see a summary with '-h')

    Global options:
          --color <WHEN>
              Use color: auto (on a terminal, unless NO_COLOR is set), always or never

      -q, --quiet
              Print results and errors only

      -v, --verbose...
              Increase verbosity (repeatable)

    Examples:
      # Switch to the multigroup layout
      kubewright edit --multigroup

      # Watch only the operator's namespace
      kubewright edit --namespaced

      # Enable the Prometheus ServiceMonitor
      kubewright edit --prometheus

      # Change the storage version
      kubewright edit api --group shop --kind Order --storage-version v2

      # Use cert-manager for the webhook certificate
      kubewright edit --webhook-certs cert-manager

      # Preview the changes
      kubewright edit --network-policy --dry-run
    ");
}

#[test]
fn help_of_help() {
    assert_snapshot!(kubewright("help --help"), @"
    exit status 0
    --- stdout
    Print help for kubewright or a command

    Usage: kubewright help [OPTIONS] [COMMAND]...

    Arguments:
      [COMMAND]...  Command, such as `version`

    Options:
      -h, --help  Print help

    Global options:
          --color <WHEN>  Use color: auto (on a terminal, unless NO_COLOR is set), always or never
      -q, --quiet         Print results and errors only
      -v, --verbose...    Increase verbosity (repeatable)

    Examples:
      # Print help for kubewright
      kubewright help

      # Print help for a command
      kubewright help completion
    ");
}
