# The two commands of the README; each sets up what it needs on a fresh Debian or Ubuntu.
export PATH := $(HOME)/.cargo/bin:$(PATH)

.PHONY: demo test build install java setup jdks glibcs readers server tracefs bench fuzz clean

# Build, start a real Java program, show its account.
demo: build java
	scripts/demo

# Everything that CI checks; every test must run.
test: setup jdks glibcs readers java server tracefs
	cargo fmt --check
	cargo clippy --all-targets --locked -- -D warnings
	scripts/deny
	MARUSA_ALL_TESTS=1 cargo test --locked --no-fail-fast --lib --tests -- --test-threads=1
	fuzz/run 10

build: setup
	cargo build --release --locked

# The program, its manual and what shells need to complete its commands: make install PREFIX=/usr/local
PREFIX ?= /usr/local
share = $(DESTDIR)$(PREFIX)/share
install: build
	install -D -m 755 target/release/marusa $(DESTDIR)$(PREFIX)/bin/marusa
	target/release/marusa man -o $(share)/man/man1
	install -d $(share)/bash-completion/completions $(share)/zsh/site-functions $(share)/fish/vendor_completions.d
	target/release/marusa completions bash > $(share)/bash-completion/completions/marusa
	target/release/marusa completions zsh > $(share)/zsh/site-functions/_marusa
	target/release/marusa completions fish > $(share)/fish/vendor_completions.d/marusa.fish

java: setup
	java/build

jdks: setup
	scripts/jdks

glibcs: setup
	scripts/glibcs

# DuckDB and pandas, which read what `marusa export` writes.
readers: setup
	scripts/readers

# The server of `marusa bench throughput`, and the load for it.
server: setup
	scripts/workloads fetch daytrader

# What the tests of `marusa stalls` read.
tracefs:
	scripts/tracefs

setup:
	scripts/setup

# The fuzzers for as long as you like: make fuzz SECONDS=600
fuzz:
	fuzz/run $(or $(SECONDS),60)

# The figures of the README and of docs/benchmarks.md.
bench: build java jdks
	cargo bench --locked

clean:
	cargo clean
	rm -rf java/build-out
