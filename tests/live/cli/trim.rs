//! `marusa trim` where it can or must not do anything.

use super::*;

#[test]
fn wrong_times_and_sizes_exit_with_2() {
    for arguments in [
        &["trim"][..],
        &["trim", "1", "--every", "0s"],
        &["trim", "1", "--every", "soon"],
        &["trim", "1", "--above", "64X"],
        &["trim", "1", "--above", "-1M"],
    ] {
        let output = marusa(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", text(&output.stderr));
    }
    assert_fails(&marusa(&["trim", "4194304"]), 3, &["no process with pid 4194304"]);
}

#[test]
fn another_users_jvm_is_not_trimmed() {
    if !is_root() {
        return skip("only root can run marusa as another user");
    }
    let Some(jvm) = Jvm::under_load(&row("17", "serial"), &["-Xmx100m"], LOAD) else { return };
    assert_fails(&as_nobody(&["trim", &jvm.pid.to_string()]), 4, &["CAP_SYS_PTRACE"]);
}

#[test]
fn too_little_is_left_alone_and_attachment_that_is_forbidden_is_not_tried() {
    let options = ["-Xmx100m", "-XX:+DisableAttachMechanism"];
    let Some(jvm) = Jvm::under_load(&row("25", "serial"), &options, LOAD) else { return };
    let pid = jvm.pid.to_string();
    let output = marusa(&["trim", &pid, "--above", "1T"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("not trimmed: "), "{}", text(&output.stdout));
    let output = marusa(&["trim", &pid]);
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("DisableAttachMechanism"), "{}", text(&output.stderr));
}
