//! The help of further commands.

use crate::run::kubewright;
use insta::assert_snapshot;

#[test]
fn the_help_command_equals_the_help_flag() {
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
fn without_arguments_help_is_an_error() {
    let run = kubewright("");
    assert_eq!((run.status, run.stdout.as_str()), (2, ""));
    assert_eq!(run.stderr, kubewright("-h").result());
}

#[test]
fn help_of_image_build() {
    assert_snapshot!(kubewright("image build --help"), @r"
    exit status 0
    --- stdout
    Build the operator's image

    Usage: kubewright image build [OPTIONS] [DIR] [-- <CARGO_ARGS>...]

    Arguments:
      [DIR]            Project directory [default: .]
      [CARGO_ARGS]...  Arguments for cargo, after `--`

    Options:
          --platform <PLATFORM>  Platforms, such as linux/amd64,linux/arm64 [default: linux on this
                                 machine's architecture]
      -o, --output <OUTPUT>      Where the image goes: oci-layout, docker-archive or push [default:
                                 oci-layout]
          --dest <PATH>          Path of the layout or archive [default: dist/image or dist/image.tar]
          --digest-file <FILE>   Write the digest to this file
          --insecure-registry    Use HTTP for the registry; the default for registries on this machine
      -t, --tag <IMG>            Name and tag of the image [default: controller:latest]
          --libc <LIBC>          C library: musl (static) or glibc (a copy of this machine's) [default:
                                 musl]
          --binary <FILE>        Use this compiled binary instead of compiling (one per platform)
          --bin <NAME>           Operator binary, if the package has several
          --profile <NAME>       Cargo profile [default: release]
          --label <NAME=VALUE>   Label, in addition to those from Cargo.toml and git (repeatable)
          --ca-file <FILE>       PEM file with further CA certificates (repeatable)
          --sbom[=<BOOL>]        Attach an SBOM (CycloneDX) [default: true]
      -h, --help                 Print help

    Global options:
          --color <WHEN>  Use color: auto (on a terminal, unless NO_COLOR is set), always or never
      -q, --quiet         Print results and errors only
      -v, --verbose...    Increase verbosity (repeatable)

    Examples:
      # Build an OCI layout in dist/image
      kubewright image build

      # Push an image for two platforms
      kubewright image build -t registry.example.com/shop:v1 \
          --platform linux/amd64,linux/arm64 -o push

      # Write an archive for `docker load` and `ctr images import`
      kubewright image build -t shop:v1 --output docker-archive --dest shop.tar

      # Package a compiled binary
      kubewright image build --binary target/release/shop
    ");
}

#[test]
fn help_of_image_load() {
    assert_snapshot!(kubewright("image load --help"), @"
    exit status 0
    --- stdout
    Load the operator's image into a local cluster

    Usage: kubewright image load [OPTIONS] <CLUSTER> [DIR] [-- <CARGO_ARGS>...]

    Arguments:
      <CLUSTER>        Cluster: kind, minikube, k3d or containerd (of this machine)
      [DIR]            Project directory [default: .]
      [CARGO_ARGS]...  Arguments for cargo, after `--`

    Options:
          --name <NAME>          Cluster name, minikube profile or containerd namespace [default: the
                                 tool's, and k8s.io]
          --platform <PLATFORM>  Platform of the nodes [default: linux on this machine's architecture]
          --archive <FILE>       Load this archive instead of building one
      -t, --tag <IMG>            Name and tag of the image [default: controller:latest]
          --libc <LIBC>          C library: musl (static) or glibc (a copy of this machine's) [default:
                                 musl]
          --binary <FILE>        Use this compiled binary instead of compiling (one per platform)
          --bin <NAME>           Operator binary, if the package has several
          --profile <NAME>       Cargo profile [default: release]
          --label <NAME=VALUE>   Label, in addition to those from Cargo.toml and git (repeatable)
          --ca-file <FILE>       PEM file with further CA certificates (repeatable)
          --sbom[=<BOOL>]        Attach an SBOM (CycloneDX) [default: true]
      -h, --help                 Print help

    Global options:
          --color <WHEN>  Use color: auto (on a terminal, unless NO_COLOR is set), always or never
      -q, --quiet         Print results and errors only
      -v, --verbose...    Increase verbosity (repeatable)

    Examples:
      # Build and load into the default kind cluster
      kubewright image load kind

      # Load into a minikube profile
      kubewright image load minikube --name sandbox -t controller:dev

      # Load an existing archive
      kubewright image load containerd --archive dist/image.tar
    ");
}

#[test]
fn help_of_deploy() {
    assert_snapshot!(kubewright("deploy --help"), @"
    exit status 0
    --- stdout
    Build and deploy the operator, and wait until it is available

    Usage: kubewright deploy [OPTIONS] [DIR] [-- <CARGO_ARGS>...]

    Arguments:
      [DIR]            Project directory [default: .]
      [CARGO_ARGS]...  Arguments for cargo, after `--`

    Options:
          --image <IMG>          Deploy this image instead of building one, with the digest of its tag
          --build                Build the image [default, unless --image is set]
          --push                 Push the image [default if its name has a registry]
          --load <CLUSTER>       Load the image into kind, minikube, k3d or containerd [default: by the
                                 context, such as kind-dev]
          --name <NAME>          Cluster name, minikube profile or containerd namespace of --load
                                 [default: by the context]
          --platform <PLATFORM>  Platforms of the image [default: linux on this machine's architecture]
          --insecure-registry    Use HTTP for the registry; the default for registries on this machine
          --kubeconfig <FILE>    Kubeconfig [default: KUBECONFIG, or ~/.kube/config]
          --context <NAME>       Kubeconfig context [default: the current context]
          --wait[=<BOOL>]        Wait for the rollout [default: true]
          --timeout <DURATION>   Timeout of the rollout [default: 5m]
          --dry-run              Print the objects without pushing, loading or applying
      -t, --tag <IMG>            Name and tag of the image [default: controller:latest]
          --libc <LIBC>          C library: musl (static) or glibc (a copy of this machine's) [default:
                                 musl]
          --binary <FILE>        Use this compiled binary instead of compiling (one per platform)
          --bin <NAME>           Operator binary, if the package has several
          --profile <NAME>       Cargo profile [default: release]
          --label <NAME=VALUE>   Label, in addition to those from Cargo.toml and git (repeatable)
          --ca-file <FILE>       PEM file with further CA certificates (repeatable)
          --sbom[=<BOOL>]        Attach an SBOM (CycloneDX) [default: true]
      -h, --help                 Print help

    Global options:
          --color <WHEN>  Use color: auto (on a terminal, unless NO_COLOR is set), always or never
      -q, --quiet         Print results and errors only
      -v, --verbose...    Increase verbosity (repeatable)

    Examples:
      # Build, push and deploy
      kubewright deploy --tag registry.example.com/shop:v1

      # Build, load into the kind cluster of the context, and deploy
      kubewright deploy --context kind-dev

      # Deploy an existing image
      kubewright deploy --image registry.example.com/shop:v1

      # Print the manifests with the image
      kubewright deploy --image registry.example.com/shop:v1 --dry-run
    ");
}

#[test]
fn help_of_undeploy() {
    assert_snapshot!(kubewright("undeploy --help"), @"
    exit status 0
    --- stdout
    Remove the operator from a cluster; CRDs that have objects are kept

    Usage: kubewright undeploy [OPTIONS] [DIR]

    Arguments:
      [DIR]  Project directory [default: .]

    Options:
          --kubeconfig <FILE>          Kubeconfig [default: KUBECONFIG, or ~/.kube/config]
          --context <NAME>             Kubeconfig context [default: the current context]
          --ignore-not-found[=<BOOL>]  Succeed if objects do not exist [default: false]
          --delete-custom-resources    Also delete CRDs that have objects, and these objects
          --timeout <DURATION>         Timeout for the deletion of one object [default: 2m]
          --dry-run                    Print what would be deleted
      -h, --help                       Print help

    Global options:
          --color <WHEN>  Use color: auto (on a terminal, unless NO_COLOR is set), always or never
      -q, --quiet         Print results and errors only
      -v, --verbose...    Increase verbosity (repeatable)

    Examples:
      # Remove the operator; CRDs with objects are kept
      kubewright undeploy --ignore-not-found

      # Print what would be removed
      kubewright undeploy --dry-run

      # Also delete all custom resources
      kubewright undeploy --delete-custom-resources
    ");
}

#[test]
fn help_of_build_installer() {
    assert_snapshot!(kubewright("build-installer --help"), @"
    exit status 0
    --- stdout
    Generate dist/install.yaml with the CRDs and the deployment

    Usage: kubewright build-installer [OPTIONS] [DIR]

    Arguments:
      [DIR]  Project directory [default: .]

    Options:
          --image <IMG>    Image of the operator; with a digest, the installer does not change when the
                           tag does [default: controller:latest]
      -o, --output <FILE>  Output file; - is standard output [default: dist/install.yaml]
      -h, --help           Print help

    Global options:
          --color <WHEN>  Use color: auto (on a terminal, unless NO_COLOR is set), always or never
      -q, --quiet         Print results and errors only
      -v, --verbose...    Increase verbosity (repeatable)

    Examples:
      # Write dist/install.yaml
      kubewright build-installer --image registry.example.com/shop:v1

      # Print the installer
      kubewright build-installer --output -
    ");
}
