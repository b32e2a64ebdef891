//! Advice in words, and as what platforms take.

use super::*;
use crate::advise::{CodeCache, Key, Limit, Malloc, Observed, Part, Peak, Wanted, Workload};
use crate::map::Area;
use std::time::Duration;
use yaml_rust2::YamlLoader;

const MIB: u64 = 1 << 20;

fn workload() -> Workload {
    let peak = Peak {
        at: "2026-11-20T14:02:10Z".to_string(),
        replica: "orders-x2x".to_string(),
        parts: vec![
            Part { area: Area::MallocFreed, bytes: 200 * MIB },
            Part { area: Area::ClassMetadata, bytes: 90 * MIB },
        ],
        page_table_bytes: Some(2 * MIB),
        kernel_bytes: Some(8 * MIB),
        kernel_is_estimated: true,
        malloc_arenas: Some(61),
    };
    let limit = Limit {
        heap_bytes: 1024 * MIB,
        tables_growth_bytes: 4 * MIB,
        base_bytes: 300 * MIB,
        growth_bytes: 0,
        reserve_bytes: 30 * MIB,
        held_bytes: 1328 * MIB,
        limit_bytes: 1360 * MIB,
        returned_base_bytes: Some(140 * MIB),
        returned_limit_bytes: Some(1200 * MIB),
        share_ratio: 0.95,
        confidence_ratio: 0.986,
        confidence_by_days_ratio: 0.3,
        peak,
        growing: Vec::new(),
    };
    let key = Key {
        namespace: Some("shop".to_string()),
        workload: Some("orders".to_string()),
        container: Some("api".to_string()),
        main: Some("Orders".to_string()),
        java_version: Some("21.0.8".to_string()),
        gc: Some("g1".to_string()),
        max_heap_bytes: Some(1024 * MIB),
    };
    Workload {
        name: key.name(),
        key,
        kind: Some("StatefulSet".to_string()),
        observed: Observed {
            replicas: 12,
            jvms: 12,
            replica_days: 84,
            days: 7,
            oom_kills: 3,
            limit_bytes: Some(2048 * MIB),
            ..Observed::default()
        },
        limit: Some(limit.clone()),
        limit_as_is: Some(limit),
        heap: None,
        malloc: Some(Malloc {
            returnable_bytes: 160 * MIB,
            arenas: Some(61),
            environment: vec![("MALLOC_ARENA_MAX".to_string(), "2".to_string())],
            options: Vec::new(),
            why: "61 arenas each keep what their threads freed; two keep less".to_string(),
        }),
        code_cache: Some(CodeCache {
            highest_bytes: 44 * MIB,
            reserved_bytes: 48 * MIB,
            may_grow_bytes: 4 * MIB,
            option: Some("-XX:ReservedCodeCacheSize=80m".to_string()),
        }),
        not_judged: vec!["-Xmx: ZGC".to_string()],
    }
}

fn shown(advice: &Advice) -> String {
    let mut out = Vec::new();
    text(&mut out, advice).expect("written");
    String::from_utf8(out).expect("UTF-8")
}

fn advice(workloads: Vec<Workload>) -> Advice {
    let wanted = Wanted { until: Duration::from_secs(30 * 86_400), gc_ratio: 0.02 };
    Advice { wanted, workloads, budget: None, check: None }
}

#[test]
fn the_sum_is_shown_as_one_and_rests_on_what_was_seen() {
    let text = shown(&advice(vec![workload()]));
    for line in [
        "shop/orders/api: Orders\n12 replicas, 84 replica-days of 7 days, JDK 21.0.8, g1, -Xmx 1.0 GiB, OOM-killed 3 times\n",
        "    1.3 GiB  the limit; it is 2.0 GiB now\n",
        "bound       95 % of replica-days stay within the highest need, with 99 % confidence; by days alone 30 %",
        "malloc      MALLOC_ARENA_MAX=2: 61 arenas each keep",
        "code cache  -XX:ReservedCodeCacheSize=80m: 44.0 MiB of 48.0 MiB were in use",
        "saves       8.1 GiB with 12 replicas, compared with the limits now",
        "not judged  -Xmx: ZGC\n",
    ] {
        let joined = text.replace("\n            ", " ");
        assert!(joined.contains(line), "{line}\n{text}");
    }
    assert!(text.contains("orders-x2x: malloc-then-freed 200.0 MiB, class metadata 90.0 MiB"), "{text}");
}

fn emitted(format: Format) -> String {
    let mut unknown = workload();
    (unknown.limit, unknown.name) = (None, "unknown".to_string());
    let mut out = Vec::new();
    let left_out = emit(&mut out, format, &[workload(), unknown]).expect("written");
    assert_eq!(left_out, ["unknown"]);
    String::from_utf8(out).expect("UTF-8")
}

#[test]
fn platforms_get_what_they_take() {
    let yaml = emitted(Format::Kubernetes);
    let patch =
        &YamlLoader::load_from_str(&yaml).expect("YAML")[0]["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(patch["name"].as_str(), Some("api"));
    assert_eq!(patch["resources"]["limits"]["memory"].as_str(), Some("1360Mi"));
    assert_eq!(patch["resources"]["requests"]["memory"].as_str(), Some("1360Mi"));
    assert_eq!(patch["env"][0]["value"].as_str(), Some("-Xmx1024m -XX:ReservedCodeCacheSize=80m"));
    assert_eq!(patch["env"][1]["name"].as_str(), Some("MALLOC_ARENA_MAX"));
    assert_eq!(patch["env"][1]["value"].as_str(), Some("2"), "a string, as Kubernetes takes it");
    let vpa = &YamlLoader::load_from_str(&emitted(Format::Vpa)).expect("YAML")[0];
    assert_eq!(vpa["kind"].as_str(), Some("VerticalPodAutoscaler"));
    assert_eq!(vpa["spec"]["targetRef"]["kind"].as_str(), Some("StatefulSet"));
    let policy = &vpa["spec"]["resourcePolicy"]["containerPolicies"][0];
    assert_eq!(
        (policy["containerName"].as_str(), policy["minAllowed"]["memory"].as_str()),
        (Some("api"), Some("1360Mi"))
    );
    assert!(emitted(Format::Docker).contains("docker update --memory 1360m --memory-swap 1360m api\n"));
    let unit = emitted(Format::Systemd);
    assert!(
        unit.contains("[Service]\nMemoryMax=1360M\nEnvironment=\"JAVA_TOOL_OPTIONS=-Xmx1024m -XX:ReservedCodeCacheSize=80m\"\n"),
        "{unit}"
    );
}

#[test]
fn hostile_names_stay_names() {
    let mut hostile = workload();
    hostile.key.container = Some("a'; rm -rf /\n: {".to_string());
    hostile.key.workload = hostile.key.container.clone();
    hostile.name = hostile.key.name();
    for format in [Format::Kubernetes, Format::Docker, Format::Systemd, Format::Vpa] {
        let mut out = Vec::new();
        emit(&mut out, format, std::slice::from_ref(&hostile)).expect("written");
        let text = String::from_utf8(out).expect("UTF-8");
        assert!(!text.lines().any(|line| line.starts_with("rm") || line.starts_with(": {")), "{text}");
        if matches!(format, Format::Kubernetes | Format::Vpa) {
            assert_eq!(YamlLoader::load_from_str(&text).expect("YAML").len(), 1, "{text}");
        }
    }
}
