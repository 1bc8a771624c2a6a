#!/usr/bin/env bash
# Builds static programs that need nothing of the system they run on:
# target/TARGET/release/sumrate and sumrate-link. The compiler and linker is zig (packaging/requirements.txt).
# usage: tools/static.sh [--target aarch64-unknown-linux-musl] [cargo's arguments]
set -euo pipefail
cd "$(dirname "$0")/.."

target=$(uname -m)-unknown-linux-musl
if [[ ${1:-} == --target ]]; then
  target=$2
  shift 2
fi
machine=${target%%-*}
[[ $target == @(x86_64|aarch64)-unknown-linux-musl ]] || { echo "no static programs for $target: x86_64-unknown-linux-musl or aarch64-unknown-linux-musl" >&2; exit 2; }
built=$(realpath -m "${CARGO_TARGET_DIR:-target}")

# zig and cargo-zigbuild, in a place of their own.
tools=$built/tools/zig
if ! cmp -s packaging/requirements.txt "$tools/requirements.txt"; then
  python3 -m venv "$tools"
  "$tools/bin/pip" install --quiet --requirement packaging/requirements.txt
  cp packaging/requirements.txt "$tools"
fi
export PATH=$tools/bin:$PATH
# The preload library is for programs with glibc, also beside the static program.
libraries=("$target" "${target/-musl/-gnu}")
for name in "${libraries[@]}"; do
  rustup target list --installed | grep -qx "$name" || rustup target add "$name"
done

# The loader of the eBPF programs needs libelf and zlib.
libelf=$built/libelf/$machine
if [[ ! $libelf/libelf.a -nt packaging/libelf/build.sh || ! $libelf/libelf.a -nt Cargo.lock ]]; then
  packaging/libelf/build.sh "$machine-linux-musl" "$libelf"
fi
export "LIBBPF_SYS_LIBRARY_PATH_${target//-/_}=$libelf" LIBBPF_SYS_EXTRA_CFLAGS="-I$libelf/include"

# glibc 2.17 is the oldest that Rust supports.
SUMRATE_PRELOAD_LINKER=$built/tools/link-$machine-gnu.sh
cat >"$SUMRATE_PRELOAD_LINKER" <<SCRIPT
#!/bin/sh
exec cargo-zigbuild zig cc -- -target $machine-linux-gnu.2.17 "\$@"
SCRIPT
chmod +x "$SUMRATE_PRELOAD_LINKER"
export SUMRATE_PRELOAD_LINKER

# zig takes rustc's -static-pie for -static: without -pie the programs lie at fixed addresses.
for program in sumrate-cli:sumrate sumrate-link:sumrate-link; do
  cargo-zigbuild rustc --locked --target "$target" -p "${program%:*}" --bin "${program#*:}" "${@:---release}" -- -C link-arg=-pie
done
