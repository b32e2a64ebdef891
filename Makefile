# The two commands of the README; each sets up what it needs on a fresh Debian or Ubuntu.
export PATH := $(HOME)/.cargo/bin:$(PATH)

.PHONY: demo test build java setup jdks glibcs bench fuzz clean

# Build, start a real Java program, show its account.
demo: build java
	scripts/demo

# Everything that CI checks; every test must run.
test: setup jdks glibcs java
	cargo fmt --check
	cargo clippy --all-targets --locked -- -D warnings
	MARUSA_ALL_TESTS=1 cargo test --locked --lib --tests -- --test-threads=1
	fuzz/run 10

build: setup
	cargo build --release --locked

java: setup
	java/build

jdks: setup
	scripts/jdks

glibcs: setup
	scripts/glibcs

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
