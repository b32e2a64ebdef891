use super::*;
use crate::act::door::content::{Content, Put, UNITS, Value};

fn refused(change: Change) -> String {
    check(&change, "/state").expect_err("must be refused").0
}
fn add(file: &str) -> Change {
    Change::Add { file: file.into(), by: 1 }
}
fn create(file: &str) -> Change {
    let put = Put { file: "/proc/sys/vm/nr_hugepages".into(), value: Value::Number(5) };
    Change::Create { file: file.into(), content: Content::Sysctl { settings: vec![put] } }
}

#[test]
fn the_pools_of_each_size_and_node_and_nothing_else() {
    for file in [
        "/proc/sys/vm/nr_hugepages",
        "/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_overcommit_hugepages",
        "/sys/devices/system/node/node12/hugepages/hugepages-2048kB/nr_hugepages",
    ] {
        assert_eq!(check(&add(file), "/state"), Ok(()));
    }
    for file in [
        "/proc/sys/vm/drop_caches",
        "/proc/sys/vm/../kernel/core_pattern",
        "/sys/kernel/mm/hugepages/hugepages-kB/nr_hugepages",
        "/sys/kernel/mm/hugepages/hugepages-2048kB/../../x/nr_hugepages",
        "/sys/kernel/mm/hugepages/hugepages-2048kB//nr_hugepages",
        "proc/sys/vm/nr_hugepages",
        "/proc/sys/vm/nr_hugepages\n",
        "",
    ] {
        refused(add(file));
    }
}

#[test]
fn a_file_is_ours_by_its_directory_and_its_name() {
    assert_eq!(check(&create("/etc/sysctl.d/60-marusa.conf"), "/state"), Ok(()));
    for file in [
        "/etc/sysctl.d/60-other.conf",
        "/etc/sysctl.d/sub/marusa.conf",
        "/etc/cron.d/marusa.conf",
        "/etc/sysctl.d/.marusa.conf",
        "/etc/sysctl.d/-marusa.conf",
        "/etc/sysctl.d/marusa.conf\r",
        "/etc/sysctl.d/marusa%h.conf",
        "/etc/sysctl.d/marusa\\x2d.conf",
        "/etc/sysctl.d/marusa.conf\u{202e}",
    ] {
        refused(create(file));
    }
}

#[test]
fn an_addition_counts_for_one_service() {
    let directory = |name: &str| check(&Change::Directory { path: format!("{UNITS}/{name}") }, "/state");
    for name in ["tomcat.service.d", "tomcat@a.service.d", "a\\x2db.service.d", "a.b:c.service.d"] {
        assert_eq!(directory(name), Ok(()), "{name}");
    }
    for name in [
        "service.d",
        ".service.d",
        "systemd-.service.d",
        "-.service.d",
        "a\\.service.d",
        "a\\x2.service.d",
        "a\\x2g.service.d",
        "a%i.service.d",
        "a b.service.d",
        "a.socket.d",
    ] {
        assert!(directory(name).is_err(), "{name}");
    }
}

#[test]
fn values_have_a_range() {
    let set = |file: &str, value| Change::Set { file: file.into(), value };
    assert_eq!(check(&set("/proc/sys/vm/max_map_count", 262_144), "/state"), Ok(()));
    assert!(refused(set("/proc/sys/vm/max_map_count", 1)).contains("outside of 65530 to"));
    refused(set("/proc/sys/kernel/shmmax", 0));
    refused(set("/proc/sys/vm/nr_hugepages", 4));
    refused(set("/proc/sys/vm/min_free_kbytes", 4096));
    refused(set("/sys/kernel/mm/transparent_hugepage/khugepaged/max_ptes_none", 8192));
    refused(Change::Add { file: "/proc/sys/vm/nr_hugepages".into(), by: u64::MAX });
    refused(Change::Add { file: "/proc/sys/vm/max_map_count".into(), by: 1 });
}

#[test]
fn mounts_and_directories_lie_in_our_own_directories() {
    let mount = |at: &str, options: &str| Change::MountTmpfs { at: at.into(), options: options.into() };
    assert_eq!(check(&mount("/var/lib/marusa/jdk/17", "huge=always,size=600m"), "/state"), Ok(()));
    assert_eq!(check(&Change::Directory { path: "/state/jdk".into() }, "/state"), Ok(()));
    assert_eq!(
        check(&Change::Directory { path: "/etc/systemd/system/tomcat@a.service.d".into() }, "/state"),
        Ok(())
    );
    refused(mount("/etc", "huge=always"));
    refused(mount("/var/lib/marusa", "huge=always"));
    refused(mount("/state/pages/x", "huge=always"));
    refused(mount("/state/jdk", "huge=always,suid"));
    for options in [
        "size=1g,uid=3",
        "size=0",
        "size=100g",
        "size=50%",
        "mode=1777",
        "mode=777",
        "huge=1",
        "size=1g,size=2g",
        "",
    ] {
        refused(mount("/state/jdk", options));
    }
    assert_eq!(check(&mount("/state/jdk", "huge=within_size,size=600m,mode=755"), "/state"), Ok(()));
    refused(Change::Directory { path: "/etc/systemd/system".into() });
    let copy = |to: &str, linked: &str| Change::CopyTree {
        from: "/usr/lib/jvm/x".into(),
        to: to.into(),
        linked: vec![linked.into()],
    };
    refused(copy("/usr", "lib/src.zip"));
    refused(copy("/run/marusa/x", "../../etc"));
    assert_eq!(check(&copy("/run/marusa/x", "lib/src.zip"), "/state"), Ok(()));
}

#[test]
fn swap_and_groups_are_our_own_and_of_a_sensible_size() {
    let swap = |file: &str, bytes: u64| Change::SwapFile { file: file.into(), bytes };
    let group = |path: &str| Change::MemoryGroup { path: path.into(), limit_bytes: 1 << 30 };
    assert_eq!(check(&swap("/state/bench-1/swap", 1 << 30), "/state"), Ok(()));
    assert_eq!(check(&group("/sys/fs/cgroup/memory/marusa-bench-1"), "/state"), Ok(()));
    assert_eq!(check(&group("/sys/fs/cgroup/marusa-bench-1"), "/state"), Ok(()));
    refused(swap("/var/swap", 1 << 30));
    refused(swap("/state/pages/swap", 1 << 30));
    refused(swap("/state/swap", 1 << 60));
    refused(group("/sys/fs/cgroup/memory/system.slice"));
    refused(group("/sys/fs/cgroup/memory/marusa-"));
    refused(group("/sys/fs/cgroup/memory/marusa-x/y"));
    refused(Change::MemoryGroup { path: "/sys/fs/cgroup/marusa-x".into(), limit_bytes: 1 });
}

#[test]
fn words_are_words() {
    let choose =
        |word: &str| Change::Choose { file: format!("{THP}/hugepages-64kB/enabled"), word: word.into() };
    assert_eq!(check(&choose("inherit"), "/state"), Ok(()));
    refused(choose("within_size"));
    refused(choose("always\n1"));
    refused(choose(""));
    assert_eq!(moves_with(&format!("{THP}/shmem_enabled")), Some("/proc/sys/vm/min_free_kbytes"));
    assert_eq!(moves_with(&format!("{THP}/defrag")), None);
}
