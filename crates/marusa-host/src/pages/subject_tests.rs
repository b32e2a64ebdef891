use super::*;

const PRINTED: &str = "[Global flags]\n\
     ccstr AllocateHeapAt                           =                                           {product} {default}\n\
   size_t InitialHeapSize                          = 629145600                                 {product} {command line}\n\
   size_t MaxHeapSize                              = 629145600                                 {product} {command line}\n\
    uintx ReservedCodeCacheSize                    = 251658240                              {pd product} {ergonomic}\n\
     bool UseG1GC                                  = true                                      {product} {ergonomic}\n\
     bool VerifyOops                               = false                                     {product} {default}\n";

fn wanted() -> Wanted {
    Wanted { heap_bytes: 6 << 30, cpus: 4, ..Wanted::default() }
}

#[test]
fn what_a_jdk_printed() {
    let subject = of_flags(PRINTED, 21, Some("21.0.8+9-LTS".into()), "/jdk".into(), 4).expect("flags");
    assert_eq!((subject.gc, subject.heap_max_bytes), (Gc::G1, 629145600));
    assert_eq!(subject.flags["ReservedCodeCacheSize"], "251658240");
    assert_eq!(subject.flags["AllocateHeapAt"], "");
    assert!(!subject.flags.contains_key("VerifyOops"), "as a snapshot would keep them");
    assert_eq!(kept("    uintx MaxHeapSize   := 12    {product}\n")["MaxHeapSize"], "12");
    assert!(of_flags("nonsense", 21, None, "/jdk".into(), 4).is_err());
}

#[test]
fn the_release_of_a_jdk() {
    let printed = "openjdk version \"1.8.0_504\"\nOpenJDK Runtime Environment (build 1.8.0_504-8u504-ga-1-b01)\n\
                   OpenJDK 64-Bit Server VM (build 25.504-b01, mixed mode)\n";
    assert_eq!(release_of(None, printed), Some((Vm::HotSpot, 8, Some("25.504-b01".into()))));
    let release = "JAVA_VERSION=\"17.0.9\"\nJVM_VARIANT=\"Openj9\"\n";
    assert_eq!(release_of(Some(release), ""), Some((Vm::OpenJ9, 17, Some("17.0.9".into()))));
    assert_eq!(release_of(Some("MODULES=\"\"\n"), "no java"), None);
    assert_eq!(release_of(Some("JAVA_VERSION=\"26-ea\"\n"), "").map(|found| found.1), Some(26));
}

#[test]
fn jdks_by_name() {
    assert_eq!(named("hotspot-17"), Ok((Vm::HotSpot, 17)));
    assert_eq!(named("OpenJ9-21"), Ok((Vm::OpenJ9, 21)));
    for bad in ["hotspot-7", "hotspot-9", "hotspot-99", "hotspot-", "graal-21", ""] {
        assert!(named(bad).is_err(), "{bad}");
    }
}

#[test]
fn the_options_that_start_it() {
    let wanted = Wanted { gc: Some("zgc".into()), code_cache_bytes: Some(512 << 20), ..wanted() };
    let launch = wanted.launch(Vm::HotSpot, 11).expect("options");
    assert_eq!(
        launch.join(" "),
        "-XX:+UnlockExperimentalVMOptions -XX:+UseZGC -Xmx6g -Xms6g -XX:ReservedCodeCacheSize=512m"
    );
    assert!(wanted.launch(Vm::HotSpot, 8).is_err(), "no ZGC there");
    let j9 = Wanted { gc: Some("balanced".into()), ..wanted }.launch(Vm::OpenJ9, 21).expect("options");
    assert_eq!(j9.join(" "), "-Xgcpolicy:balanced -Xmx6g -Xms6g -Xcodecachetotal512m");
}

#[test]
fn a_named_jdk_has_the_flags_that_the_user_gives() {
    let options = vec!["-XX:G1HeapRegionSize=16m".to_string(), "-XX:-SegmentedCodeCache".to_string()];
    let subject = Wanted { options, ..wanted() }.by_name(Vm::HotSpot, 17, 64 << 30).expect("a subject");
    assert_eq!((subject.gc, subject.heap_initial_bytes), (Gc::G1, 6 << 30));
    assert_eq!(subject.flags["G1HeapRegionSize"], "16777216");
    assert_eq!(subject.flags["SegmentedCodeCache"], "false");
    assert_eq!((size(1536 << 20), size(1000), size(0)), ("1536m".into(), "1000".into(), "0".into()));
}
