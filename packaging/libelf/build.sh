#!/usr/bin/env bash
# Builds libelf.a and libz.a for musl from the sources in the crate libbpf-sys, with their headers.
# The loader of the eBPF programs needs both, and no Debian package has them for musl.
# usage: packaging/libelf/build.sh ZIG_TARGET OUTPUT, for example x86_64-linux-musl target/libelf
set -euo pipefail
cd "$(dirname "$0")/../.."
target=$1
output=$2

crate=$(cargo metadata --locked --format-version 1 | python3 -c '
import json, pathlib, sys
packages = json.load(sys.stdin)["packages"]
print(next(pathlib.Path(p["manifest_path"]).parent for p in packages if p["name"] == "libbpf-sys"))')
[[ -d $crate/elfutils/libelf && -d $crate/zlib ]] || { echo "$crate has no sources of libelf and zlib" >&2; exit 1; }

work=$output/objects
rm -rf "$work"
mkdir -p "$work/elf" "$work/z" "$output/include"
install -m 644 "$crate"/elfutils/libelf/{libelf,gelf,nlist,elf}.h "$crate"/zlib/{zlib,zconf}.h "$output/include"
export target crate # for the shells of xargs
compile() { # folder for objects, source
  local object=$1/$(basename "$2" .c).o
  python3 -m ziglang cc -target "$target" -O2 -w -fPIC -fno-sanitize=all -ffile-prefix-map="$crate=." -D_GNU_SOURCE -DHAVE_CONFIG_H \
    -DHAVE_UNISTD_H -DHAVE_HIDDEN -Ipackaging/libelf -I"$crate/elfutils/lib" -I"$crate/elfutils/libelf" -I"$crate/zlib" \
    -c "$2" -o "$object"
}
export -f compile
ls "$crate"/elfutils/libelf/*.c | xargs -P "$(nproc)" -I{} bash -ec 'compile "$0" "$1"' "$work/elf" {}
ls "$crate"/zlib/*.c | xargs -P "$(nproc)" -I{} bash -ec 'compile "$0" "$1"' "$work/z" {}
rm -f "$output"/lib{elf,z}.a
(cd "$work/elf" && python3 -m ziglang ar rcD ../../libelf.a *.o)
(cd "$work/z" && python3 -m ziglang ar rcD ../../libz.a *.o)
