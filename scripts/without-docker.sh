#!/bin/sh
# The steps of the tutorial notes without Docker: from `init` to a running Pod, and to archives for containerd and
# minikube.
#
#   scripts/without-docker.sh [DIR]
#
# Needs kubewright, cargo with the musl target and musl-gcc (or cargo-zigbuild), kubectl and make. The project is
# created in DIR/bar-controller; DIR is a temporary directory by default.
#
#   KUBEWRIGHT   path of kubewright
#   IMAGE_FLAGS  flags of `kubewright image build`, such as `--profile dev`, which compiles faster
#   CARGO_LOCK   Cargo.lock for the project, to use versions that are downloaded already
set -eu

KUBEWRIGHT=${KUBEWRIGHT:-kubewright}
IMAGE_FLAGS=${IMAGE_FLAGS:-}
IMG=bar-controller:dev
export KUBEWRIGHT IMAGE_FLAGS IMG
# A name that no machine has: make must not find Docker.
export CONTAINER_TOOL=no-such-docker

work=${1:-$(mktemp -d)}
mkdir -p "$work/bar-controller"
work=$(cd "$work" && pwd)
cd "$work/bar-controller"

step() {
	printf '\n## %s\n' "$*"
}

step Create the project
"$KUBEWRIGHT" init --domain ginoh.github.io --repo github.com/ginoh/bar-controller
"$KUBEWRIGHT" create api --group samplecontroller --version v1alpha1 --kind Bar
test -z "${CARGO_LOCK:-}" || cp "$CARGO_LOCK" Cargo.lock

step Build the image: make docker-build
make docker-build

step Write the archive
# shellcheck disable=SC2086 # several flags
"$KUBEWRIGHT" image build --tag "$IMG" --output docker-archive $IMAGE_FLAGS

step Load the archive
for cluster in containerd minikube; do
	tool=$cluster
	test "$cluster" = minikube || tool=ctr
	if command -v "$tool" >/dev/null; then
		"$KUBEWRIGHT" image load "$cluster" --archive dist/image.tar
	else
		echo "$tool is not installed; on a node, run: kubewright image load $cluster --archive dist/image.tar"
	fi
done

step Start a cluster
KUBECONFIG=$work/kubeconfig
export KUBECONFIG
mkfifo "$work/ready"
"$KUBEWRIGHT" apiserver --controllers all --kubeconfig "$KUBECONFIG" >"$work/ready" &
server=$!
trap 'kill "$server"; wait "$server" || true' EXIT
# The server prints one line when it is ready, or closes the pipe when it fails.
read -r ready <"$work/ready"
echo "$ready"

step Deploy: make deploy
make deploy
kubectl --namespace bar-controller-system rollout status --timeout 2m deployment/bar-controller-controller-manager
kubectl --namespace bar-controller-system get pods --output wide

step Create a Bar
kubectl apply --server-side -f config/samples/samplecontroller_v1alpha1_bar.yaml
kubectl get bars

echo
echo "project: $PWD"
echo "image: $PWD/dist/image (OCI layout), $PWD/dist/image.tar (archive)"
