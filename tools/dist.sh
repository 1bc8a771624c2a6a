#!/usr/bin/env bash
# Writes dist/: for amd64 and arm64 a Debian package, an archive with static programs and a container
# image; a list of what is linked (CycloneDX); checksums. The times of files are those of the commit.
# usage: tools/dist.sh [--profile dist] [--output dist]
set -euo pipefail
cd "$(dirname "$0")/.."
umask 022

cyclonedx_version=0.5.9
profile=dist
output=dist
while (($#)); do
  case $1 in
    --profile) profile=$2 ;;
    --output) output=$2 ;;
    *) echo "unknown argument $1; see the head of $0" >&2; exit 2 ;;
  esac
  shift 2
done
built=$(realpath -m "${CARGO_TARGET_DIR:-target}")
folder=$profile
if [[ $profile == dev ]]; then
  folder=debug
fi
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
revision=$(git rev-parse HEAD 2>/dev/null || echo unknown)
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat -c %Y Cargo.toml)}
export SOURCE_DATE_EPOCH
export CARGO_PROFILE_DEV_DEBUG=false CARGO_PROFILE_DEV_STRIP=symbols

if [[ -n $(ls -A "$output" 2>/dev/null) && ! -e $output/SHA256SUMS ]]; then
  echo "$output has files that are not of this script: empty it, or name another folder with --output" >&2
  exit 2
fi

declare -A machine_of=([amd64]=x86_64 [arm64]=aarch64)
native=$(uname -m)
work=$(mktemp -d)
# What is not whole is removed.
trap 'rm -rf "$work"; [[ -e $output/SHA256SUMS ]] || rm -rf "$output"' EXIT
rm -rf "$output"
mkdir -p "$output"

step() { printf '%s: %s (%(%H:%M:%S)T)\n' "$(basename "$0")" "$1" -1; }

archive() { # machine, folder of programs
  local name=sumrate-$version-$1-linux root
  root=$work/$name
  install -D -t "$root/bin" "$2/sumrate" "$2/sumrate-link"
  install -D -m 644 packaging/systemd/*.service -t "$root/lib/systemd/system"
  install -D -m 644 packaging/systemd/sumrate.sysusers "$root/lib/sysusers.d/sumrate.conf"
  tools/share.sh "$program" "$root/share"
  install -m 644 "$work/licences"/* CHANGELOG.md -t "$root/share/doc/sumrate"
  sed -e "s/@VERSION@/$version/" -e "s/@MACHINE@/$1/" packaging/README.dist >"$root/README"
  tar -C "$work" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" --format=gnu \
    -c "$name" | gzip -9n >"$output/$name.tar.gz"
}

step "list of what is linked"
cyclonedx=$built/tools/bin/cargo-cyclonedx
if [[ $("$cyclonedx" cyclonedx --version 2>/dev/null) != *" $cyclonedx_version" ]]; then
  cargo install --quiet --debug --locked --root "$built/tools" cargo-cyclonedx --version "$cyclonedx_version"
fi
python3 tools/sbom.py --cyclonedx "$cyclonedx" --output "$output/sumrate-$version.cdx.json"
install -D -m 644 LICENSE-APACHE LICENSE-MIT -t "$work/licences"
python3 tools/third_party.py "$output/sumrate-$version.cdx.json" >"$work/licences/third-party.txt"
for architecture in amd64 arm64; do
  step "programs for $architecture"
  # The compilers would build everything again for another value of that variable.
  env -u SOURCE_DATE_EPOCH tools/static.sh --target "${machine_of[$architecture]}-unknown-linux-musl" --profile "$profile"
done
program=$built/$native-unknown-linux-musl/$folder/sumrate
for architecture in amd64 arm64; do
  step "packages for $architecture"
  machine=${machine_of[$architecture]}
  programs=$built/$machine-unknown-linux-musl/$folder
  tools/deb.sh --binary "$programs/sumrate" --architecture "$architecture" --native "$program" \
    --licences "$work/licences/third-party.txt" --output "$output" >/dev/null
  archive "$machine" "$programs"
  python3 tools/image.py --program "$programs/sumrate" --documents "$work/licences" \
    --architecture "$architecture" --version "$version" --revision "$revision" \
    --output "$output/sumrate-$version-image-$architecture.tar"
done
(cd "$output" && LC_ALL=C sha256sum -- * >"$work/SHA256SUMS" && mv "$work/SHA256SUMS" .)
chmod 644 "$output"/*
step "done"
ls -l "$output"
