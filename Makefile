# tacho: the one entry for people and for CI. "make help" lists the targets.
#
# PG_CONFIG  the PostgreSQL to build for and to test (default: pg_config)
# CARGO_FLAGS  more arguments of cargo build
# DESTDIR    staging directory of install, as usual
# WERROR     empty: warnings of the C compiler are no errors

PG_CONFIG ?= pg_config
export PG_CONFIG
# rustup puts cargo here, login shells put it into PATH
export PATH := $(PATH):$(HOME)/.cargo/bin

# packagers, who pass USE_PGXS, have compilers that we do not know
WERROR ?= $(if $(USE_PGXS),,-Werror)

# Sources are here. Another directory to build in: make -f HERE/Makefile VPATH=HERE
top := $(patsubst %/,%,$(dir $(abspath $(lastword $(MAKEFILE_LIST)))))
# where programs go ("make install-programs"), completions for shells and manual pages
PREFIX ?= /usr/local
SHARE ?= $(PREFIX)/share
PROGRAM := $(or $(CARGO_TARGET_DIR),$(top)/target)/release/tacho
# programs tacho-NAME beside tacho; "make lab" builds tacho-bench
BESIDE = doctor live mcp record ship watch web
CARGO_BUILD = cd $(top) && cargo build --release --locked $(CARGO_FLAGS)
EXTENSION_MAKE = mkdir -p extension && $(MAKE) -C extension PG_CONFIG="$(PG_CONFIG)" \
	$(if $(VPATH),-f $(top)/extension/Makefile VPATH=$(top)/extension)
SHELL_SCRIPTS = .ci/run $(wildcard debian/tests/server debian/tests/units fleet/*.sh tools/*.sh demo/*.sh demo/incidents/*.sh bench/*.sh \
	container/test/*.sh sql/*.sh sql/test/*.sh sql/test/sh/*.sh extension/test/data/*.sh)

.DEFAULT_GOAL := build
.PHONY: all installcheck quick accept torture torture-record help build program lab extension install install-programs package-deb test-deb test-container demo test-demo demo-stop demo-dsn demo-record demo-sql screenshots \
	test demo-fleet test-fleet test-page test-sql test-matrix test-exec-backend test-incidents test-plan-values test-contrib lint deny fuzz \
	sanitize bench clean manual reference

help: ## list the targets
	@sed -nE 's/^([a-z-]+):.*## (.*)/\1	\2/p' Makefile | expand -t 14

all: WERROR =
all: build

build: program extension ## build the programs and the extension for PG_CONFIG

program: ## build only the programs (Rust): tacho, and tacho-live, tacho-web, … beside it
	@$(top)/tools/prereq.sh build
	@$(top)/tools/page.sh
	$(CARGO_BUILD) --package tacho $(BESIDE:%=--package tacho-%)

lab: ## build only tacho-bench, for experiments on private servers
	@$(top)/tools/prereq.sh build
	$(CARGO_BUILD) --package tacho-bench

# headers of PostgreSQL become system headers: their warnings are not ours
STRICT = $(if $(WERROR),WERROR=$(WERROR) COPT="-isystem $$($(PG_CONFIG) --includedir-server)")

# PGXS does not notice when PG_CONFIG changes: objects of another major go
extension: ## build only the extension (C)
	@$(top)/tools/prereq.sh extension
	@built="$$($(PG_CONFIG) --version --pkglibdir)"; mkdir -p extension; \
	if [ "$$built" != "$$(cat extension/.built-for 2>/dev/null)" ]; then \
		($(EXTENSION_MAKE) -s clean) && echo "$$built" > extension/.built-for; \
	fi
	$(EXTENSION_MAKE) $(STRICT)

# "sudo make install" after "make build" finds no cargo and needs none
install: ## install tacho and the extension into the PostgreSQL that PG_CONFIG names
	@command -v cargo >/dev/null || test -x $(PROGRAM) || $(top)/tools/prereq.sh build
	@if command -v cargo >/dev/null; then $(MAKE) -f $(top)/Makefile program; fi
	@$(MAKE) -f $(top)/Makefile extension
	$(EXTENSION_MAKE) install $(STRICT) DESTDIR="$(DESTDIR)"
	install -d "$(DESTDIR)$$($(PG_CONFIG) --bindir)"
	install -m 755 $(PROGRAM) "$(DESTDIR)$$($(PG_CONFIG) --bindir)/tacho"
	$(PROGRAM) generate "$(DESTDIR)$(SHARE)" $(wildcard $(BESIDE:%=$(DESTDIR)$(PREFIX)/bin/tacho-%))

# programs for people: a server's host may lack them, and a desk may lack a server
install-programs: program ## install tacho with live, record, ship, … into PREFIX (/usr/local)
	install -d "$(DESTDIR)$(PREFIX)/bin"
	install -m 755 $(PROGRAM) $(BESIDE:%=$(PROGRAM)-%) "$(DESTDIR)$(PREFIX)/bin"
	$(PROGRAM) generate "$(DESTDIR)$(SHARE)" $(BESIDE:%=$(PROGRAM)-%)

# as root: the roots are made by debootstrap
package-deb: ## build the Debian packages of HEAD into build/deb (SUITES="bookworm trixie"; TRIAL=1: faster)
	@tools/package-deb.sh $(if $(TRIAL),-t) $(or $(SUITES),bookworm)

test-deb: ## install and try what package-deb has built (SUITE=bookworm)
	@tools/test-deb.sh $(or $(SUITE),bookworm)

test-container: ## build and try container images from the bookworm packages of package-deb; as root
	@tools/prereq.sh container
	@tools/test-container.sh

# that server has tacho preloaded, with the settings of extension/test/regress.conf
installcheck: ## run regression tests on a running server that has tacho
	$(EXTENSION_MAKE) installcheck

demo: ## start a private cluster with load and show what tacho saw
	@demo/run.sh

demo-dsn: ## print the connection string of the demo's cluster
	@demo/run.sh --dsn

test-demo: ## solve the demo's incident in a terminal (make demo first)
	@demo/test-live.sh

demo-stop: ## stop the demo's cluster and remove it
	@demo/run.sh --stop

screenshots: ## take the pictures of docs/pictures from the demo's storm (make demo first)
	@$(MAKE) -s program
	@tools/screenshots.sh

demo-sql: ## run the demo of the SQL edition on a stock server (sql/demo.sh --stop ends it)
	@tools/prereq.sh sql
	@sql/demo.sh

demo-record: ## run the demo of tacho record, through PgBouncer (demo/record.sh --stop ends it)
	@tools/prereq.sh test
	@$(MAKE) -s program
	@demo/record.sh

# servers run the program that the tests have built: a release takes minutes
quick: ## run the checks that fail most often, in minutes: format, clippy, Rust tests, some server tests
	@tools/prereq.sh lint
	cargo fmt --all --check
	tools/check-house.sh
	cargo clippy --workspace --all-targets --locked --quiet -- -D warnings
	cargo test --workspace --locked --quiet --no-run
	@# side by side: both wait most of the time
	TACHO_PROGRAM="$(PROGRAM:release/tacho=debug/tacho)" tools/test-pg.sh readers_ statements_ 010_ 184_ & \
	cargo test --workspace --locked --quiet -- --skip fuzz_; rust=$$?; wait $$! && exit $$rust

accept: ## accept the output of regression tests as the expected one (TEST=readers_answers)
	@MAKEFLAGS= tools/test-pg.sh -a $(or $(TEST),readers_ statements_) || true
	@git status --short extension/test/expected; git diff --stat extension/test/expected

test-sql: ## run the tests of the SQL edition alone
	@tools/prereq.sh sql
	@sql/test/run.sh

test-page: ## test types and logic of the page, and the page in a browser (Node 18 or later)
	@tools/prereq.sh page
	@$(MAKE) program
	@tools/test-page.sh

test-fleet: ## test the Python package fleet/, in an environment of its own (Python 3.11 or later; ENGINES=all)
	@tools/prereq.sh fleet
	@$(MAKE) program
	@fleet/test.sh

demo-fleet: ## ship five servers, commit them, ask three engines (Python 3.11 or later)
	@tools/prereq.sh fleet
	@$(MAKE) -s program
	@demo/fleet.sh

test: ## run all tests for the PostgreSQL that PG_CONFIG names
	@tools/prereq.sh test
	@$(MAKE) program lab
	@tools/test.sh

test-matrix: ## run the servers' tests on PostgreSQL 15 to 19 (MAJORS="17 18")
	@tools/prereq.sh matrix
	@$(MAKE) program
	@tools/test-matrix.sh $(MAJORS)

test-exec-backend: ## run the server tests with EXEC_BACKEND, where each process attaches by itself
	@tools/prereq.sh test
	@$(MAKE) program
	@config="$$(tools/pg-exec-backend.sh)" && PG_CONFIG="$$config" tools/test-pg.sh -s

test-incidents: ## play scripted incidents: tacho.changes() names the causes, waits are seen; ten minutes on a quiet machine with a disk
	@tools/prereq.sh test
	@$(MAKE) program
	@TMPDIR=$${TMPDIR:-/var/tmp} TACHO_JOBS=1 TACHO_INCIDENTS=1 tools/test-pg.sh 250_changes 251_more_changes 259_waits_seen 262_table_scanned 263_autovacuum

test-plan-values: ## test that random queries leave no value in the history or in shared memory (QUERIES=10000 SEED=1)
	@tools/prereq.sh test
	@$(MAKE) program
	@TACHO_PLAN_QUERIES=$(or $(QUERIES),10000) TACHO_PLAN_SEED=$(or $(SEED),$$RANDOM) tools/test-pg.sh 135_plan_values

test-contrib: ## run contrib's suite of pg_stat_statements on tacho (PGSRC=tree, or all majors)
	@tools/prereq.sh $(if $(PGSRC),extension,matrix)
	@$(if $(PGSRC),tools/test-contrib.sh "$(PGSRC)",tools/test-contrib-matrix.sh $(MAJORS))

manual: ## build the manual as HTML in build/manual/book and check its links; the first time cargo installs mdBook
	@tools/manual.sh

reference: program ## make docs/reference from the sources and from the help of the programs
	tools/make-reference.pl
	tools/make-reference.pl --programs $(dir $(PROGRAM))

lint: ## check format, clippy, shellcheck, house rules, prose, links, reference, pages of figures, subjects of commits
	@tools/prereq.sh lint
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --features tacho-bench/parquet --locked --quiet -- -D warnings
	shellcheck -x $(SHELL_SCRIPTS)
	tools/check-house.sh
	tools/check-prose.sh
	tools/check-pages.sh
	tools/check-links.sh
	tools/make-reference.pl --check
	@# two seconds; cargo would install mdBook in minutes
	if [ -x build/mdbook/bin/mdbook ] || command -v mdbook >/dev/null; then tools/manual.sh; fi
	tools/check-commits.sh

# needs cargo-deny ("cargo install cargo-deny"); "cargo deny fetch" once makes
# "cargo deny check" look at advisories too. A build fetches only the crates that this
# system needs; this target also checks the licences of the others
deny: ## check licences, sources and duplicates of the Rust dependencies
	cargo fetch --locked --quiet
	cargo deny --offline --all-features check bans licenses sources

# Inputs with a new outcome are mutated further; coverage is not measured
FUZZ_SECONDS ?= 60
fuzz: ## mutate the input of every parser, FUZZ_SECONDS=60 for each
	@tools/prereq.sh build
	FUZZ_SECONDS=$(FUZZ_SECONDS) cargo test --workspace --locked --lib --bins fuzz_ -- --nocapture

# The stable compiler has the sanitizer behind a switch for its own bootstrap;
# the target keeps it from build scripts
HOST_TARGET = $(shell rustc -vV | sed -n 's/^host: //p')
sanitize: ## run the tape's tests with the address sanitizer
	@tools/prereq.sh build
	RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=address cargo test --locked --lib \
		--target $(HOST_TARGET) --package tacho-tape --features testing

# prints its seed; the same seed makes the same faults
MINUTES ?= 60
torture: ## run the demo while processes, disk and server fail, MINUTES=60; as root; CONTAINER=1: the postmaster is process 1
	@tools/prereq.sh build
	@$(MAKE) program
	tools/torture.pl $(if $(CONTAINER),-c) -m $(MINUTES) $(if $(SEED),-s $(SEED))

torture-record: ## run tacho record while server, pooler, network, rights and disk fail, MINUTES=60; as root
	@tools/prereq.sh build
	@$(MAKE) program
	tools/torture-record.pl -m $(MINUTES) $(if $(SEED),-s $(SEED))

bench: ## measure what tacho costs, refresh bench/results (PARTS="churn locks")
	@tools/prereq.sh build
	$(CARGO_BUILD) --package tacho --package tacho-bench --features tacho-bench/parquet
	bench/all.sh $(if $(RESULTS),-c "$(RESULTS)") $(PARTS)

clean: ## remove what was built
	@if command -v cargo >/dev/null; then cd $(top) && cargo clean --quiet; \
	else rm -rf $(dir $(patsubst %/,%,$(dir $(PROGRAM)))); fi
	$(EXTENSION_MAKE) clean
	rm -rf extension/.built-for $(top)/page/dist $(top)/page/node_modules
