//! Changes of this very host and the way back: killed at any moment, with others at work, with damaged journals and missing
//! rights. What the host was before is compared byte for byte after each test, and restored if a test fails.

mod host;
mod killed;
mod others;
mod plans;
mod refused;

use crate::common::{is_root, skip};
use host::{Host, POOL};

/// The host, locked, with something in its pools. `None` says why the test is skipped.
fn host() -> Option<Host> {
    if !is_root() {
        skip("only root changes the host");
        return None;
    }
    let host = Host::lock();
    if std::fs::write(POOL, "2").is_err() || host::number(POOL) != 2 {
        skip("this host gives no huge pages");
        return None;
    }
    host::set(host::OVERCOMMIT, "1");
    Some(host)
}
