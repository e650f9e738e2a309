#!/bin/bash
# Builds Terraform's providers of the targets that rent machines from their sources, for places where the registry of
# providers cannot be reached: build/providers, which the harness then takes them from. Needs Go. Takes minutes, once.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v go >/dev/null || { echo "error: go is missing; apt-get install golang-go, or take the providers from the registry" >&2; exit 2; }
export GOFLAGS=-mod=mod
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT

build() { # module version registry-name
  local name=${3##*/} platform; platform="$(go env GOOS)_$(go env GOARCH)"
  local program="terraform-provider-${name}_v$2" folder source
  folder="build/providers/registry.terraform.io/$3/$2/$platform"
  if [[ -x $folder/$program ]]; then return; fi
  echo "provider $3 $2: building" >&2
  source=$(go mod download -json "$1@v$2" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p') || true
  [[ -n $source ]] || { echo "error: $1@v$2 cannot be downloaded: go mod download $1@v$2 says why (GOSUMDB=off, if only Go's database of checksums cannot be reached)" >&2; exit 1; }
  cp -r "$source" "$work/$name"
  chmod -R u+w "$work/$name"
  (cd "$work/$name" && go build -o "$work/$program" .)
  mkdir -p "$folder"
  mv "$work/$program" "$folder/"
  mkdir -p "build/providers/registry.opentofu.org/${3%/*}"
  ln -sfn "../../registry.terraform.io/$3" "build/providers/registry.opentofu.org/$3"
}

build github.com/hetznercloud/terraform-provider-hcloud 1.58.0 hetznercloud/hcloud
build github.com/terraform-provider-openstack/terraform-provider-openstack/v3 3.4.0 terraform-provider-openstack/openstack
