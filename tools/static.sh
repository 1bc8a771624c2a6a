#!/usr/bin/env bash
# Builds one static binary that needs nothing of the system it runs on: target/MUSL/release/sumrate.
# It has no coupled congestion control in eBPF (--cc lia scales windows instead): its loader needs
# libelf, which Debian has for glibc only.
# usage: tools/static.sh [cargo's arguments]
set -euo pipefail
cd "$(dirname "$0")/.."
target=$(uname -m)-unknown-linux-musl

if ! command -v musl-gcc >/dev/null; then
  echo "musl-gcc is missing: as root, apt-get install -y --no-install-recommends musl-tools" >&2
  exit 1
fi
if ! rustup target list --installed | grep -qx "$target"; then
  rustup target add "$target"
fi
# aws-lc and mimalloc are C.
export CC_x86_64_unknown_linux_musl=musl-gcc CC_aarch64_unknown_linux_musl=musl-gcc
cargo build --locked --target "$target" --no-default-features -p sumrate-cli --bin sumrate "${@:---release}"
