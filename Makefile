# The two commands of the README; each sets up what it needs on a fresh Debian or Ubuntu.
export PATH := $(HOME)/.cargo/bin:$(PATH)

.PHONY: demo check test test-long vm build dist test-dist install java bench bench-all fuzz clean

# Build, start a real Java program, show its account.
demo: java
	cargo build --locked
	scripts/demo

# While you work: format, lints, and every test that needs neither root nor a JDK.
check:
	scripts/test check

# Before a landing, and what CI runs. It installs the test JDKs and what else the tests need; a test that cannot run is a failure,
# but with MARUSA_ALL_TESTS= it is listed at the end.
test test-long: export MARUSA_ALL_TESTS ?= 1
test:
	scripts/test test

# Everything in full, for hours. It may be stopped, and goes on where it was.
test-long:
	scripts/test long

# Other machines, emulated, for minutes: aarch64 with pages of 4 and of 16 KiB, an older kernel. One of them: make vm MACHINE=arm64-16k
vm: java
	scripts/setup vm
	cargo test --locked --test vm -- $(MACHINE)

build:
	scripts/setup demo
	cargo build --release --locked

# What is released, in target/packages: static binaries for x86-64 and aarch64 in tarballs, .deb, .rpm and an OCI image.
dist:
	scripts/dist

# Installs what `make dist` left into empty roots, runs it, and takes it away again; checks the packages as distributions do.
test-dist:
	scripts/test-dist

# The program, its manual and what shells need to complete its commands: make install PREFIX=/usr/local
PREFIX ?= /usr/local
install: build
	install -D -m 755 target/release/marusa $(DESTDIR)$(PREFIX)/bin/marusa
	scripts/share target/release/marusa $(DESTDIR)$(PREFIX)/share

java:
	scripts/setup demo
	java/build

# The fuzzers for as long as you like: make fuzz SECONDS=600
fuzz:
	fuzz/run $(or $(SECONDS),60)

# The figures of docs/experiments, in a night, on a machine with nothing else to do. It may be stopped, and goes on where it was.
bench-all: build java
	scripts/setup bench-all
	scripts/jdks
	scripts/bench-all

# The figures of the README and of docs/benchmarks.md.
bench: build java
	scripts/jdks
	cargo bench --locked

clean:
	cargo clean
	rm -rf java/build-out
