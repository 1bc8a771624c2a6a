#!/usr/bin/env bash
# Makes a Debian package of a binary that was built before: out/deb/sumrate_VERSION_ARCHITECTURE.deb
# usage: tools/deb.sh [--binary target/release/sumrate] [--output out/deb]
set -euo pipefail
cd "$(dirname "$0")/.."
umask 022

binary=target/release/sumrate
output=out/deb
while (($#)); do
  case $1 in
    --binary) binary=$2 ;;
    --output) output=$2 ;;
    *) echo "unknown argument $1; see the head of $0" >&2; exit 2 ;;
  esac
  shift 2
done
[[ -x $binary ]] || { echo "$binary is not there: build it (make build), or name it with --binary" >&2; exit 1; }
binary=$(realpath "$binary")

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
version=$("$binary" --version | cut -d' ' -f2)
# The same input gives the same package.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat -c %Y Cargo.toml)}
export SOURCE_DATE_EPOCH

install -D "$binary" "$root/usr/bin/sumrate"
strip --strip-unneeded "$root/usr/bin/sumrate"
for unit in packaging/systemd/*.service; do
  install -d "$root/usr/lib/systemd/system"
  sed 's|/usr/local/bin/sumrate|/usr/bin/sumrate|' "$unit" >"$root/usr/lib/systemd/system/$(basename "$unit")"
done
install -D -m 644 packaging/systemd/sumrate.sysusers "$root/usr/lib/sysusers.d/sumrate.conf"
install -D -m 644 packaging/config.toml "$root/etc/sumrate/config.toml"
install -d "$root/usr/share/man/man1" "$root/usr/share/bash-completion/completions" \
  "$root/usr/share/zsh/vendor-completions" "$root/usr/share/fish/vendor_completions.d"
"$binary" man --dir "$root/usr/share/man/man1"
gzip -9n "$root"/usr/share/man/man1/*.1
"$binary" completions bash >"$root/usr/share/bash-completion/completions/sumrate"
"$binary" completions zsh >"$root/usr/share/zsh/vendor-completions/_sumrate"
"$binary" completions fish >"$root/usr/share/fish/vendor_completions.d/sumrate.fish"
doc=$root/usr/share/doc/sumrate
install -d "$doc"
{
  echo "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/"
  echo "Upstream-Name: sumrate"
  echo
  echo "Files: *"
  echo "Copyright: The Sumrate authors"
  echo "License: MIT or Apache-2.0"
  echo " On Debian systems Apache-2.0 is in /usr/share/common-licenses/Apache-2.0. MIT:"
  sed 's/^$/./; s/^/ /' LICENSE-MIT
} >"$doc/copyright"
gzip -9nc CHANGELOG.md >"$doc/changelog.gz"
install -m 644 docs/security.md docs/limitations.md docs/capture.md docs/watching.md "$doc"
install -D -m 644 packaging/grafana/*.json -t "$doc/grafana"
[[ -f docs/running.md ]] && install -m 644 docs/running.md "$doc"

# What a static binary needs of other packages is nothing; else dpkg knows.
depends="systemd | systemd-standalone-sysusers | passwd"
if readelf -d "$binary" 2>/dev/null | grep -q NEEDED; then
  mkdir -p "$work/debian"
  printf 'Source: sumrate\n\nPackage: sumrate\nArchitecture: any\n' >"$work/debian/control"
  libraries=$(cd "$work" && dpkg-shlibdeps -O "$root/usr/bin/sumrate" 2>/dev/null | sed 's/^shlibs:Depends=//')
  [[ -n $libraries ]] || { echo "dpkg-shlibdeps does not know what $binary needs" >&2; exit 1; }
  depends="$libraries, $depends"
fi
install -d "$root/DEBIAN"
install -m 755 packaging/debian/{postinst,prerm,postrm} "$root/DEBIAN"
echo /etc/sumrate/config.toml >"$root/DEBIAN/conffiles"
sed -e "s/@VERSION@/$version/" -e "s/@ARCHITECTURE@/$(dpkg --print-architecture)/" \
  -e "s/@SIZE@/$(du -sk --exclude=DEBIAN "$root" | cut -f1)/" -e "s/@DEPENDS@/$depends/" \
  packaging/debian/control.in >"$root/DEBIAN/control"
(cd "$root" && find . -type f ! -path './DEBIAN/*' -printf '%P\0' | sort -z | xargs -0 md5sum) >"$root/DEBIAN/md5sums"
find "$root" -exec touch -hcd "@$SOURCE_DATE_EPOCH" {} +

mkdir -p "$output"
dpkg-deb --root-owner-group -Zxz --build "$root" "$output" >/dev/null
ls "$output"/sumrate_"$version"_*.deb
