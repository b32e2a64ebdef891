use super::*;

const K: u64 = 1024;
const M: u64 = 1024 * 1024;

fn heap(text: &str) -> (Option<u64>, Option<u64>, Option<u64>) {
    let info = parse(text).expect("a known form");
    (info.used_bytes, info.committed_bytes, info.max_bytes)
}

#[test]
fn g1_of_jdk_8_17_and_25() {
    let text = " garbage-first heap   total 70656K, used 22056K [0x00000000f8000000, 0x00000000f8100228, 0x0000000100000000)\n  \
                region size 1024K, 2 young (2048K), 0 survivors (0K)\n \
                Metaspace       used 4003K, capacity 4816K, committed 4864K, reserved 1056768K\n  \
                class space    used 455K, capacity 502K, committed 512K, reserved 1048576K\n";
    assert_eq!(heap(text), (Some(22056 * K), Some(70656 * K), Some(128 * M)));
    let info = parse(text).expect("a known form");
    assert_eq!(info.metaspace.map(|space| space.used_bytes), Some(4003 * K));
    let text = " garbage-first heap   total 71680K, used 21447K [0x00000000f8000000, 0x0000000100000000)\n \
                Metaspace       used 4198K, committed 4352K, reserved 1114112K\n";
    assert_eq!(heap(text), (Some(21447 * K), Some(71680 * K), Some(128 * M)));
    let text = "garbage-first heap   total reserved 131072K, committed 71680K, used 22535K [0x00000000f8000000, 0x0000000100000000)\n \
                region size 1024K, 2 young (2048K), 0 survivors (0K)\n";
    assert_eq!(heap(text), (Some(22535 * K), Some(71680 * K), Some(128 * M)));
    assert_eq!(parse(text).expect("a known form").metaspace, None, "25 says nothing of it");
}

#[test]
fn generations_are_summed_and_both_survivors_are_committed() {
    let serial = " def new generation   total 39296K, used 2752K [0x00000000f8000000, 0x00000000faaa0000, 0x00000000faaa0000)\n  \
                  eden space 34944K,   7% used [0x00000000f8000000, 0x00000000f82b03a0, 0x00000000fa220000)\n \
                  tenured generation   total 87424K, used 20353K [0x00000000faaa0000, 0x0000000100000000, 0x0000000100000000)\n   \
                  the space 87424K,  23% used [0x00000000faaa0000, 0x00000000fbe80678, 0x00000000fbe80800, 0x0000000100000000)\n";
    assert_eq!(heap(serial), (Some(23105 * K), Some(128 * M), Some(128 * M)));
    let parallel = "PSYoungGen      total 38400K, used 2847K [0x00000000fd580000, 0x0000000100000000, 0x0000000100000000)\n \
                    eden space 33280K, 8% used [0x00000000fd580000,0x00000000fd847e10,0x00000000ff600000)\n\
                    ParOldGen       total 87552K, used 20425K [0x00000000f8000000, 0x00000000fd580000, 0x00000000fd580000)\n \
                    object space 87552K, 23% used [0x00000000f8000000,0x00000000f93f2758,0x00000000fd580000)\n";
    assert_eq!(heap(parallel), (Some(23272 * K), Some(128 * M), Some(128 * M)));
    let cms = " par new generation   total 39296K, used 2752K [0x00000000f8000000, 0x00000000faaa0000, 0x00000000faaa0000)\n \
               concurrent mark-sweep generation total 87424K, used 20374K [0x00000000faaa0000, 0x0000000100000000, 0x0000000100000000)\n";
    assert_eq!(heap(cms), (Some(23126 * K), Some(128 * M), Some(128 * M)));
    let serial_25 = "DefNew     total 39296K, used 2987K [0x00000000f8000000, 0x00000000faaa0000, 0x00000000faaa0000)\n\
                     Tenured    total 87424K, used 20423K [0x00000000faaa0000, 0x0000000100000000, 0x0000000100000000)\n";
    assert_eq!(heap(serial_25), (Some(23410 * K), Some(128 * M), Some(128 * M)));
}

#[test]
fn the_collectors_without_generations() {
    let z = "ZHeap            used 30M, capacity 128M, max capacity 256M\n Cache           98M (3)\n  size classes   2M (1)\n";
    assert_eq!(heap(z), (Some(30 * M), Some(128 * M), Some(256 * M)));
    assert_eq!(parse(z).expect("a known form").unit_bytes, M);
    let shenandoah = "Shenandoah Heap\n 128M max, 128M soft max, 64M committed, 27904K used\n 512 x 256K regions\nStatus: not cancelled\n";
    assert_eq!(heap(shenandoah), (Some(27904 * K), Some(64 * M), Some(128 * M)));
    let epsilon = "Epsilon Heap\nAllocation space:\n space 131072K,  21% used [0x00000000f8000000, 0x00000000f9bbfe18, 0x0000000100000000)\n";
    assert_eq!(heap(epsilon), (Some(0x1bbfe18), Some(128 * M), None));
}

#[test]
fn anything_else_is_refused() {
    assert_eq!(parse(""), Err(ReportError::UnknownForm));
    assert_eq!(parse("garbage-first heap total x, used y ["), Err(ReportError::UnknownForm));
}
