#!/usr/bin/env bash
# Installs the transports that the lab compares with, from the crate registry, in pinned versions, into
# target/peers; what is there already is left alone. One that cannot be built is named, the others are
# installed all the same, and the exit status is 1.
# Usage: tools/peers.sh [aggligator] [tquic]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

declare -A crate=([aggligator]=aggligator-util [tquic]=tquic_tools)
declare -A version=([aggligator]=0.18.12 [tquic]=1.6.0)
declare -A options=([aggligator]="--no-default-features --bin agg-speed --bin agg-tunnel" [tquic]="")
declare -A programs=([aggligator]="agg-speed agg-tunnel" [tquic]="tquic_server tquic_client")
declare -A what=(
  [aggligator]="several TCP connections joined into one, in user space (Rust)"
  [tquic]="multipath QUIC with its HTTP server and client (Rust and BoringSSL)"
)
root="${CARGO_TARGET_DIR:-target}/peers"

present() { # PEER: in this version, with all its programs
  local program
  grep -qsF "\"${crate[$1]} ${version[$1]} " "$root/.crates.toml" || return 1
  for program in ${programs[$1]}; do
    [[ -x $root/bin/$program ]] || return 1
  done
}

(($# > 0)) || set -- aggligator tquic
failed=0
for peer in "$@"; do
  if [[ -z ${crate[$peer]:-} ]]; then
    echo "unknown peer: $peer (known: ${!crate[*]})" >&2
    exit 2
  fi
  echo "$peer ${version[$peer]}: ${what[$peer]}"
  if present "$peer"; then
    echo "  is installed in $root"
    continue
  fi
  # shellcheck disable=SC2086
  if CARGO_PROFILE_RELEASE_DEBUG=false CARGO_TARGET_DIR="$root/build" cargo install --locked --quiet \
    --force --root "$root" ${options[$peer]} "${crate[$peer]}@${version[$peer]}"; then
    echo "  installed in $root: ${programs[$peer]}"
  else
    echo "  could not be built; the lab reports it as missing" >&2
    failed=1
  fi
done
rm -rf "$root/build"
exit "$failed"
