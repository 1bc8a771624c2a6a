#!/usr/bin/env bash
# Installs what is missing for the named purposes: build, static, dist, demo, bench, bench-core, qoe, browser, player,
# everyday, test, fuzz, peers, venv.
# As root it installs Debian packages and says which; otherwise it says the command to run. It asks nothing.
set -euo pipefail

declare -A package_of=(
  [cc]=build-essential [make]=make [ip]=iproute2 [ss]=iproute2 [tc]=iproute2 [nsenter]=util-linux
  [sysctl]=procps [curl]=curl [mptcpize]=mptcpize [iperf3]=iperf3 [nft]=nftables [chromium]=chromium
  [git]=git [setpriv]=util-linux [c++]=build-essential [cmake]=cmake [openssl]=openssl
  [wget]=wget [nc]=netcat-openbsd [ssh]=openssh-client [sshd]=openssh-server [node]=nodejs
  [javac]=default-jdk-headless [nginx]="nginx-light libnginx-mod-stream" [npm]=npm [prometheus]=prometheus
  [go]=golang-go [valgrind]=valgrind [dpkg-deb]=dpkg [xz]=xz-utils
  [haproxy]=haproxy [tayga]=tayga [ufw]=ufw [firewalld]=firewalld [NetworkManager]=network-manager
  [qemu-aarch64-static]=qemu-user-static [faketime]=faketime [clang]=clang [pkg-config]=pkg-config
  [dnsmasq]=dnsmasq-base
)
# Those of `optional` are wanted and not needed: without them the results say what is missing.
declare -A needs=(
  [build]="cc make clang pkg-config"
  [demo]="ip ss nsenter sysctl curl mptcpize"
  [bench]="ip ss nsenter sysctl iperf3 mptcpize"
  [test]="ip ss tc nsenter sysctl curl dnsmasq mptcpize iperf3 nft chromium setpriv faketime openssl git wget nc ssh sshd node javac go prometheus haproxy tayga nginx ufw firewalld NetworkManager"
  [everyday]="ip ss tc nsenter sysctl curl dnsmasq mptcpize iperf3 nft setpriv openssl git"
  [bench-core]="cc valgrind"
  [static]="cc make clang pkg-config"
  [dist]="cc make clang pkg-config dpkg-deb xz qemu-aarch64-static"
  [fuzz]="cc c++"
  [qoe]="ip ss nsenter sysctl curl mptcpize nginx openssl git ssh sshd nc"
  [browser]="chromium node npm nginx openssl"
  [player]="chromium node npm mptcpize"
  [peers]="cc c++ cmake openssl"
  [venv]=""
)
optional=" qemu-aarch64-static mptcpize faketime clang wget nc ssh sshd node javac go prometheus "
PATH="$PATH:/usr/sbin:/sbin"

missing=()
lacking=()
for purpose in "$@"; do
  for program in ${needs[$purpose]}; do
    if ! command -v "$program" >/dev/null; then
      read -ra packages <<<"${package_of[$program]}"
      missing+=("${packages[@]}")
      lacking+=("$program")
    fi
  done
  # The loader of the congestion controls in eBPF is linked with both.
  if [[ $purpose == @(build|fuzz) ]]; then
    for library in elf:libelf-dev:libelf.h z:zlib1g-dev:zlib.h; do
      IFS=: read -r name package header <<<"$library"
      if ! echo "#include <$header>" | cc -E - >/dev/null 2>&1; then
        missing+=("$package")
        lacking+=("lib$name's $header")
      fi
    done
  fi
  if [[ $purpose == @(venv|static|dist) ]] && ! python3 -c 'import ensurepip, venv' 2>/dev/null; then
    missing+=(python3-venv)
    lacking+=("python3 -m venv")
  fi
  if [[ $purpose == @(build|static|dist|fuzz|peers) ]] && ! command -v cargo >/dev/null; then
    echo "cargo is missing: install Rust (https://rustup.rs), the version is in rust-toolchain.toml" >&2
    exit 1
  fi
done
if ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
  echo "Python 3.11 or newer is missing (python3 is $(python3 --version 2>&1 || true))" >&2
  exit 1
fi
if ((${#missing[@]} == 0)); then
  exit 0
fi

mapfile -t packages < <(printf '%s\n' "${missing[@]}" | sort -u)
mapfile -t lacking < <(printf '%s\n' "${lacking[@]}" | sort -u)
echo "missing: ${lacking[*]}"
if ((EUID != 0)) || ! command -v apt-get >/dev/null; then
  echo "as root: apt-get update && apt-get install -y --no-install-recommends ${packages[*]}"
  for program in "${lacking[@]}"; do
    [[ $optional == *" $program "* ]] || exit 1
  done
  exit 0
fi
export DEBIAN_FRONTEND=noninteractive
echo "installing: ${packages[*]}"
apt-get update -qq
for package in "${packages[@]}"; do
  if ! apt-get install -y -qq --no-install-recommends "$package" >/dev/null; then
    [[ $optional == *" $package "* ]] || exit 1
    echo "$package cannot be installed here; going on without it"
  fi
done
# The laboratory starts its servers itself, on ports of its own: what was installed for it is to offer nothing.
for package in "${packages[@]}"; do
  case $package in nginx-light) service=nginx ;; openssh-server) service=ssh ;; prometheus) service=$package ;; *) continue ;; esac
  if [[ -d /run/systemd/system ]]; then
    echo "switching off the service $service, which was installed just now"
    systemctl disable --quiet --now "$service" || true
  else
    service "$service" stop >/dev/null 2>&1 || true
  fi
done
