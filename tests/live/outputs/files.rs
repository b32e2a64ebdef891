//! Where `-o` and its like write, and what they leave alone.

use super::fake::STRANGER;
use crate::common::{marusa, text};
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};

/// A command that needs no JVM.
fn plan(path: &str) -> std::process::Output {
    marusa(&["pages", "plan", "--jdk", "hotspot-17", "--heap", "64m", "-o", path])
}

#[test]
fn a_strangers_link_and_a_strangers_file_are_left_alone() {
    if !crate::common::is_root() {
        return crate::common::skip("other users' files need root");
    }
    let directory = tempfile::tempdir().expect("a directory");
    let at = |name: &str| directory.path().join(name).display().to_string();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o1777)).expect("ours");
    fs::write(at("victim"), "precious").expect("a file");
    fs::create_dir(at("directory")).expect("a directory");
    symlink(at("victim"), at("link")).expect("a link");
    symlink(at("directory"), at("way")).expect("a link");
    fs::write(at("his"), "his").expect("a file");
    ["link", "way"].iter().for_each(|name| lchown(at(name), Some(STRANGER), None).expect("root"));
    chown(at("his"), Some(STRANGER), None).expect("root");
    for path in [at("link"), at("way/new"), at("his")] {
        let output = plan(&path);
        assert_eq!(output.status.code(), Some(2), "{path}: {}", text(&output.stderr));
        assert!(text(&output.stderr).contains("user 65534"), "{path}: {}", text(&output.stderr));
    }
    assert_eq!(fs::read_to_string(at("victim")).expect("there"), "precious");
    assert_eq!(fs::read_to_string(at("his")).expect("there"), "his");
    assert_eq!(fs::read_dir(at("directory")).expect("there").count(), 0);
}

#[test]
fn what_is_written_is_private_and_devices_pipes_and_own_links_may_be_named() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = |name: &str| directory.path().join(name).display().to_string();
    symlink(at("real"), at("link")).expect("a link");
    assert_eq!(plan(&at("link")).status.code(), plan("/dev/null").status.code());
    let mode = fs::metadata(at("real")).expect("the link was followed").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let output = plan("/dev/stdout");
    assert!(text(&output.stdout).contains("\"schema\""), "{}", text(&output.stdout));
    assert_eq!(fs::read_dir(directory.path()).expect("ours").count(), 2, "no drafts");
}

#[test]
fn a_failed_write_leaves_the_earlier_file() {
    let output = plan("/dev/full");
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("cannot write /dev/full"), "{}", text(&output.stderr));
}
