//! The C programs of tests/native, compiled when the first test asks for them.

use super::{root, skip};
use std::path::{Path, PathBuf};
use std::process::Command;

/// tests/native/SOURCE.c as PRODUCT, compiled unless that was done since the source changed. `None`: there is no compiler.
pub fn compiled(source: &str, product: &str, options: &[&str], libraries: &[String]) -> Option<PathBuf> {
    built("cc", &format!("{source}.c"), product, options, libraries)
}

/// tests/native/NAME.cpp as a shared library.
pub fn cpp_library(name: &str) -> Option<PathBuf> {
    built("g++", &format!("{name}.cpp"), &format!("lib{name}.so"), &["-shared", "-fPIC"], &[])
}

fn built(
    compiler: &str,
    source: &str,
    product: &str,
    options: &[&str],
    libraries: &[String],
) -> Option<PathBuf> {
    let source = root().join("tests/native").join(source);
    let product = Path::new(env!("CARGO_TARGET_TMPDIR")).join(product);
    let changed = |path: &Path| path.metadata().and_then(|facts| facts.modified()).ok();
    if changed(&product) > changed(&source) {
        return Some(product);
    }
    std::fs::create_dir_all(product.parent().expect("a file name")).expect("a directory");
    // Two tests may ask at once: each has its own, and the last is what stays.
    let part = product.with_extension(format!("{}.part", std::process::id()));
    let mut command = Command::new(compiler);
    command.args(["-O1", "-Wall", "-Wextra", "-Werror"]).args(options);
    command.arg(&source).arg("-o").arg(&part).args(libraries);
    let Ok(output) = command.output() else {
        skip(&format!("no {compiler}"));
        return None;
    };
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    std::fs::rename(&part, &product).expect("the product can be moved");
    Some(product)
}

/// tests/native/NAME.c as a program of that name.
pub fn program(name: &str) -> Option<PathBuf> {
    compiled(name, name, &[], &[])
}
