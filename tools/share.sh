#!/usr/bin/env bash
# Writes manual pages, completions and documents, which packages and archives have in common.
# usage: tools/share.sh PROGRAM OUTPUT [ZSH_DIRECTORY]; PROGRAM must run on this machine
set -euo pipefail
cd "$(dirname "$0")/.."
umask 022
program=$1
output=$2
zsh=$output/${3:-zsh/site-functions}
fish=$output/fish/vendor_completions.d
doc=$output/doc/sumrate

install -d "$output/man/man1" "$output/bash-completion/completions" "$zsh" "$fish" "$doc/grafana"
# `sumrate link` and `sumrate-link` are one program's commands: the page of one is that of the other.
"$program" man --dir "$output/man/man1" >/dev/null
gzip -9n "$output"/man/man1/*.1
"$program" completions bash >"$output/bash-completion/completions/sumrate"
"$program" completions zsh >"$zsh/_sumrate"
"$program" completions fish >"$fish/sumrate.fish"
install -m 644 packaging/grafana/*.json -t "$doc/grafana"
install -m 644 packaging/config.toml "$doc/config.example.toml"
for name in security limitations capture watching running; do
  if [[ -f docs/$name.md ]]; then
    install -m 644 "docs/$name.md" "$doc"
  fi
done
