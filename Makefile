# `make` alone shows what there is.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:

PYTHON ?= python3
VENV := .venv
export PYTHONPATH := $(CURDIR)/python

.PHONY: help build deb static docs reference demo first-use bench bench-core tournament tournament-rules tournament-causes tournament-cubic peers browser player test test-rust test-python lint format clean prerequisites soak soak-real faults attacks load fuzz tables

help: ## Show this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | awk -F'\t' '{ printf "  make %-12s %s\n", $$1, $$2 }'

build: ## Build the binaries (target/release/sumrate and sumrate-link)
	tools/prerequisites.sh build
	cargo build --release --locked -p sumrate-cli -p sumrate-link

deb: build ## Make a Debian package: out/deb/ (install it: apt install ./out/deb/sumrate_*.deb)
	tools/deb.sh --binary $(if $(CARGO_TARGET_DIR),$(CARGO_TARGET_DIR),target)/release/sumrate

static: ## Build one static binary with musl: target/x86_64-unknown-linux-musl/release/sumrate
	tools/prerequisites.sh static
	tools/static.sh

demo: ## Two radios added up under a real download: out/demo/report.html (flags: DEMO="--size 512M")
	tools/prerequisites.sh build demo
	cargo build --release --locked -p sumrate-cli -p sumrate-link
	$(PYTHON) -m sumrate.lab demo $(DEMO)

first-use: ## Time the README's way from an empty clone to a download over two radios: out/first-use.json
	PYTHONPATH=$(CURDIR)/python:$(CURDIR) $(PYTHON) -m tests.docs.first_use --json out/first-use.json

bench: $(VENV)/installed ## The performance goals P1 to P10: about 215 minutes; BENCH=--quick about 40 (also BENCH=--json)
	@tools/prerequisites.sh build demo bench >&2
	@cargo build --release --locked -p sumrate-cli -p sumrate-link
	@cargo build --release --locked -p fbdt --example tls_pump
	@{ tools/prerequisites.sh peers && tools/peers.sh; } >&2 || echo "without all peers: the results name what is missing" >&2
	@$(VENV)/bin/python -m sumrate.lab bench $(BENCH)

bench-core: ## What the protocol core costs per frame: time (criterion) and instructions (callgrind)
	tools/prerequisites.sh bench-core
	cargo install --quiet --locked --root target/tools \
	  gungraun-runner --version "$$(sed -n '/^name = "gungraun"$$/{n;s/version = "\(.*\)"/\1/p}' Cargo.lock)"
	cargo bench --locked -p fbdt-proto --bench protocol
	PATH="$(CURDIR)/target/tools/bin:$$PATH" cargo bench --locked -p fbdt-proto --bench instructions

tournament: $(VENV)/installed ## Every scheduler over a matrix of conditions, simulated: out/tournament/ (about 30 minutes on 2 cores)
	cargo build --release --locked -p fbdt-tournament
	mkdir -p out/tournament/traces
	for kind in los nlos mobility; do for seed in 1 2 3 4; do for radio in wigig wifi; do \
	  $(PYTHON) -m sumrate.traces --kind $$radio-$$([ $$radio = wifi ] && echo los || echo $$kind) --seed $$seed --seconds 20 \
	    --output out/tournament/traces/$$kind-$$seed.$$radio.trace >/dev/null; done; done; done
	target/release/fbdt-tournament --traces out/tournament/traces --output out/tournament/published.json
	$(VENV)/bin/python -m sumrate.report.tournament out/tournament/published.json \
	  --figure out/tournament/published.svg --summary out/tournament/published.md \
	  --commit "$$(git describe --always --dirty --abbrev=40 2>/dev/null || echo unknown)" \
	  $(foreach name,tournament-sample tournament-contrast,$(addprefix --sockets ,$(firstword $(dir \
	    $(wildcard out/lab/$(name)/manifest.json docs/results/lab/$(name)/manifest.json)))))

tournament-rules: out/tournament/published.json ## What early copies and the commit limit change, in every third condition (about 10 minutes)
	cargo build --release --locked -p fbdt-tournament
	target/release/fbdt-tournament --traces out/tournament/traces --every 3 --rules bare \
	  --scheduler just-in-time --scheduler two-ended --output out/tournament/bare.json
	target/release/fbdt-tournament --traces out/tournament/traces --every 3 --rules product \
	  $(addprefix --scheduler ,minrtt blest ecf daps otias lrf round-robin) --output out/tournament/product.json
	$(VENV)/bin/python -m sumrate.report.tournament.rules $(addprefix out/tournament/,published.json product.json bare.json) \
	  --output out/tournament/rules.md \
	  --commit "$$(git describe --always --dirty --abbrev=40 2>/dev/null || echo unknown)"

tournament-cubic: out/tournament/published.json ## Whether standings hold over CUBIC: every third condition, beside the usual ones (about 10 minutes)
	cargo build --release --locked -p fbdt-tournament
	target/release/fbdt-tournament --traces out/tournament/traces --every 3 --tcp cubic --output out/tournament/cubic.json
	set -e; commit="$$(git describe --always --dirty --abbrev=40 2>/dev/null || echo unknown)"; \
	  summary="$(VENV)/bin/python -m sumrate.report.tournament --commit $$commit"; \
	  $$summary out/tournament/published.json --like out/tournament/cubic.json --summary out/tournament/published-third.md; \
	  $$summary out/tournament/cubic.json --summary out/tournament/cubic.md

DEFAULT_AGAIN = target/release/fbdt-tournament --traces out/tournament/traces --scheduler just-in-time

tournament-causes: out/tournament/published.json ## Why the default is behind where it is (about 20 minutes)
	cargo build --release --locked -p fbdt-tournament
	for rules in uncopied unlimited bare; do \
	  $(DEFAULT_AGAIN) --rules $$rules --output out/tournament/default-$$rules.json || exit; done
	rm -f out/tournament/again*.json
	set -e; lost="$$($(VENV)/bin/python -m sumrate.report.tournament.causes out/tournament/published.json --again)"; \
	  [ -n "$$lost" ] || exit 0; \
	  target/release/fbdt-tournament --traces out/tournament/traces --seeds 40 $$lost --output out/tournament/again.json; \
	  for rules in uncopied unlimited bare; do \
	    $(DEFAULT_AGAIN) --seeds 40 $$lost --rules $$rules --output out/tournament/again-$$rules.json; done
	$(VENV)/bin/python -m sumrate.report.tournament.causes out/tournament/published.json \
	  out/tournament/default-*.json $$(ls out/tournament/again*.json 2>/dev/null) \
	  --output out/tournament/causes.md \
	  --commit "$$(git describe --always --dirty --abbrev=40 2>/dev/null || echo unknown)"

out/tournament/published.json:
	$(MAKE) tournament

peers: ## Install the transports that the lab compares with (aggligator, TQUIC) into target/peers
	tools/prerequisites.sh peers
	tools/peers.sh $(PEERS)

browser: ## Install what drives Chromium for page loads (playwright-core) into python/sumrate/qoe/browser
	tools/prerequisites.sh browser
	npm ci --prefix python/sumrate/qoe/browser

player: ## Install the real player (hls.js, and what drives Chromium) into python/sumrate/qoe/video/player
	tools/prerequisites.sh player
	npm ci --no-audit --no-fund --ignore-scripts --prefix python/sumrate/qoe/video/player

test: test-rust test-python ## Run every test

test-rust: ## Run the Rust tests
	cargo test --locked --workspace --no-fail-fast

# What runs nothing in namespaces has all cores; the rest has them for itself.
test-python: $(VENV)/installed build ## Run the lab's and the system tests (real processes in namespaces)
	tools/prerequisites.sh test
	cargo build --release --locked -p fbdt --example message_relay
ifdef PYTEST
	$(VENV)/bin/pytest $(PYTEST)
else
	$(VENV)/bin/pytest -m "not system" -n auto --dist loadfile
	$(VENV)/bin/pytest -m system
endif

SEEDS ?= 100000
TIME ?= 30

soak: ## Simulate SEEDS=100000 mixes of work and faults: out/soak/report.json
	cargo build --release --locked -p fbdt-sim
	$(PYTHON) tools/code_state.py out/soak/report.json -- \
	  target/release/fbdt-soak run --seeds $(SEEDS) --json out/soak/report.json --failures out/soak/failures

ROUNDS ?= 3
FAULTS ?=

faults: ## Make every real fault on real sockets ROUNDS=3 times: out/faults/report.json (flags: FAULTS="--fault blackout")
	tools/prerequisites.sh build test
	cargo build --release --locked -p sumrate-cli -p sumrate-link
	$(PYTHON) tools/code_state.py out/faults/report.json -- \
	  $(PYTHON) -m sumrate.lab faults --rounds $(ROUNDS) $(FAULTS)

soak-real: ## Random traffic under random real faults for TIME=7200 seconds: out/soak-real/report.json (flags: SOAK="--seed 4")
	tools/prerequisites.sh build test
	cargo build --release --locked -p sumrate-cli -p sumrate-link
	$(PYTHON) tools/code_state.py out/soak-real/report.json -- \
	  $(PYTHON) -m sumrate.lab soak --time $(if $(filter command line environment,$(origin TIME)),$(TIME),7200) $(SOAK)

attacks: ## Hostile strangers beside checked sessions, each for 10 seconds: out/attacks/report.json (flags: ATTACKS="--time 60")
	tools/prerequisites.sh build test
	cargo build --release --locked -p sumrate-cli -p sumrate-link
	$(PYTHON) tools/code_state.py out/attacks/report.json -- \
	  $(PYTHON) -m sumrate.lab attacks $(ATTACKS)

load: ## 100 sessions with 1000 streams at once, and handshakes per second: out/load/report.json (flags: LOAD="--sessions 200")
	tools/prerequisites.sh build test
	cargo build --release --locked -p sumrate-cli -p sumrate-link
	$(PYTHON) tools/code_state.py out/load/report.json -- \
	  $(PYTHON) -m sumrate.lab load $(LOAD)

fuzz: $(VENV)/installed ## Run every fuzz target for TIME=30 seconds: out/fuzz/report.json
	tools/prerequisites.sh fuzz
	$(PYTHON) tools/code_state.py out/fuzz/report.json -- \
	  $(PYTHON) tools/fuzz.py --time $(TIME) --json out/fuzz/report.json

tables: ## Write what the last soak, fuzz, faults, soak-real, attacks and load runs reached into docs/
	$(PYTHON) tools/trust_tables.py $(foreach kind,soak fuzz faults soak-real attacks load,$(if $(wildcard out/$(kind)/report.json),--$(kind) out/$(kind)/report.json))

lint: $(VENV)/installed ## Check format, lints (warnings are errors), types, layering and licences
	! git grep -nE '^(<<<<<<<|>>>>>>>)' -- . ':!docs/results'
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets -- -D warnings
	$(VENV)/bin/ruff format --check python tests tools
	$(VENV)/bin/ruff check python tests tools
	$(VENV)/bin/mypy
	$(PYTHON) tools/check_layering.py
	$(VENV)/bin/python tools/check_licences.py

docs: $(VENV)/installed ## Build the documentation site, with the Rust API: out/site/index.html
	tools/prerequisites.sh build
	cargo doc --quiet --locked --no-deps -p fbdt -p fbdt-proto
	SUMRATE_RUSTDOC="$${CARGO_TARGET_DIR:-target}/doc" $(VENV)/bin/mkdocs build --strict

reference: $(VENV)/installed ## Write the pages of docs/reference from the code, and the table of features
	UPDATE_DOCS=1 cargo test --quiet --locked -p sumrate-cli --test reference
	$(VENV)/bin/python tools/reference.py
	$(VENV)/bin/python tools/features.py

format: $(VENV)/installed ## Format Rust and Python
	cargo fmt --all
	$(VENV)/bin/ruff format python tests tools

prerequisites: ## Install what building, the demo and the tests need, or say what is missing
	tools/prerequisites.sh build demo bench test

$(VENV)/installed: pyproject.toml # what it says is no result: `make bench BENCH=--json` prints one
	@tools/prerequisites.sh venv >&2
	@$(PYTHON) -m venv $(VENV)
	@$(VENV)/bin/pip install --quiet --editable '.[dev]' >&2
	@touch $@

clean: ## Remove what was built and measured
	rm -rf target out $(VENV)
