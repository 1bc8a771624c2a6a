#!/usr/bin/env bash
# Makes a Debian package of programs that were built before: OUTPUT/sumrate_VERSION_ARCHITECTURE.deb
# usage: tools/deb.sh [--binary target/release/sumrate] [--architecture amd64] [--native PROGRAM]
#          [--licences FILE] [--output out/deb]
# sumrate-link is taken from the folder of --binary. --native is a sumrate that runs on this machine and
# prints manual pages and completions, where --binary is for another processor.
set -euo pipefail
cd "$(dirname "$0")/.."
umask 022

binary=target/release/sumrate
architecture=$(dpkg --print-architecture)
native=
licences=
output=out/deb
while (($#)); do
  case $1 in
    --binary) binary=$2 ;;
    --architecture) architecture=$2 ;;
    --native) native=$2 ;;
    --licences) licences=$2 ;;
    --output) output=$2 ;;
    *) echo "unknown argument $1; see the head of $0" >&2; exit 2 ;;
  esac
  shift 2
done
native=${native:-$binary}
link=$(dirname "$binary")/sumrate-link
for program in "$binary" "$link"; do
  [[ -x $program ]] || { echo "$program is not there: build it (make build), or name its folder with --binary" >&2; exit 1; }
done
binary=$(realpath "$binary")
link=$(realpath "$link")
native=$(realpath "$native")

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
release=$("$native" --version | cut -d' ' -f2)
version=$release-1
# The same input gives the same package.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat -c %Y Cargo.toml)}
export SOURCE_DATE_EPOCH

is_dynamic() { readelf -d "$binary" 2>/dev/null | grep -q NEEDED; }

for program in "$binary" "$link"; do
  install -D "$program" "$root/usr/bin/$(basename "$program")"
done
if [[ $architecture == "$(dpkg --print-architecture)" ]]; then
  strip --strip-unneeded --remove-section=.comment --remove-section=.note "$root"/usr/bin/*
fi
for unit in packaging/systemd/*.service; do
  install -d "$root/usr/lib/systemd/system"
  sed 's|/usr/local/bin/sumrate|/usr/bin/sumrate|' "$unit" >"$root/usr/lib/systemd/system/$(basename "$unit")"
done
install -D -m 644 packaging/systemd/sumrate.sysusers "$root/usr/lib/sysusers.d/sumrate.conf"
install -D -m 644 packaging/config.toml "$root/etc/sumrate/config.toml"
tools/share.sh "$native" "$root/usr/share" zsh/vendor-completions
doc=$root/usr/share/doc/sumrate
{
  echo "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/"
  echo "Upstream-Name: sumrate"
  echo "Comment: The licences of the libraries in the programs are in third-party.txt.gz."
  echo
  echo "Files: *"
  echo "Copyright: The Sumrate authors"
  echo "License: MIT or Apache-2.0"
  echo " On Debian systems Apache-2.0 is in /usr/share/common-licenses/Apache-2.0. MIT:"
  sed 's/^$/./; s/^/ /' LICENSE-MIT
} >"$doc/copyright"
if [[ -n $licences ]]; then
  gzip -9nc "$licences" >"$doc/third-party.txt.gz"
else
  sed -i '/^Comment: /d' "$doc/copyright"
fi
gzip -9nc CHANGELOG.md >"$doc/changelog.gz"
gzip -9nc >"$doc/changelog.Debian.gz" <<CHANGES
sumrate ($version) unstable; urgency=medium

  * Release $release: see changelog.gz.

 -- Sumrate maintainers <maintainers@sumrate.invalid>  $(date -uRd "@$SOURCE_DATE_EPOCH")
CHANGES

# A static program needs no library; dpkg knows what another one needs.
depends="systemd | systemd-standalone-sysusers | passwd"
if is_dynamic; then
  mkdir -p "$work/debian"
  printf 'Source: sumrate\n\nPackage: sumrate\nArchitecture: any\n' >"$work/debian/control"
  libraries=$(cd "$work" && dpkg-shlibdeps -O "$root"/usr/bin/* 2>/dev/null | sed 's/^shlibs:Depends=//')
  [[ -n $libraries ]] || { echo "dpkg-shlibdeps does not know what $binary needs" >&2; exit 1; }
  depends="$libraries, $depends"
fi
install -D -m 644 packaging/debian/lintian-overrides "$root/usr/share/lintian/overrides/sumrate"
install -d "$root/DEBIAN"
install -m 755 packaging/debian/{postinst,prerm,postrm} "$root/DEBIAN"
echo /etc/sumrate/config.toml >"$root/DEBIAN/conffiles"
sed -e "s/@VERSION@/$version/" -e "s/@ARCHITECTURE@/$architecture/" \
  -e "s/@SIZE@/$(du -sk --apparent-size --exclude=DEBIAN "$root" | cut -f1)/" -e "s/@DEPENDS@/$depends/" \
  packaging/debian/control.in >"$root/DEBIAN/control"
(cd "$root" && find . -type f ! -path './DEBIAN/*' ! -path './etc/*' -printf '%P\0' | LC_ALL=C sort -z | xargs -0 md5sum) >"$root/DEBIAN/md5sums"
find "$root" -exec touch -hcd "@$SOURCE_DATE_EPOCH" {} +

mkdir -p "$output"
dpkg-deb --root-owner-group -Zxz --build "$root" "$output" >/dev/null
ls "$output/sumrate_${version}_$architecture.deb"
