use super::*;
use crate::map::Account;

fn settings() -> Settings {
    Settings {
        machine: Machine::default(),
        jdk: "25".to_string(),
        every_seconds: 1.0,
        jit_options: "-Xbatch".to_string(),
        swap_options: "-Xmx128m".to_string(),
        classes: 3,
        live_bytes: 1 << 20,
        burst_bytes: 1 << 20,
        bursts: 2,
        rounds: 4,
        swap_rounds: 2,
        seed: 1,
    }
}

fn compiled(round: usize, way: Way, ms: u64) -> Trial {
    let end = AccountRow::of(Account::made_up(&[(Area::MallocFreed, 5 << 20)]));
    let compiled = Compiled {
        work_ms: Some(ms),
        cpu_ms: Some(ms as f64 * 2.0),
        system_ms: Some(if way == Way::AsItIs { 1.0 } else { 3.0 }),
        helper_cpu_ms: None,
        minor_faults: None,
        mean_resident_bytes: Some(1e8),
        peak_resident_bytes: None,
        end,
    };
    let figures = Figures { jit: Some(compiled), swap: None };
    Trial { figures, ..Trial::of(round, Arm { part: Part::Jit, way }) }
}

#[test]
fn only_rounds_with_both_arms_count() {
    let mut trials = Vec::new();
    for (round, ms) in [100, 200, 10].into_iter().enumerate() {
        trials.extend([compiled(round, Way::AsItIs, ms), compiled(round, Way::Unmapped, ms * 11 / 10)]);
    }
    trials.push(compiled(3, Way::Unmapped, 500));
    let arms = [Way::AsItIs, Way::Unmapped].map(|way| Arm { part: Part::Jit, way });
    let found = arms.each_ref().map(|arm| figures(&settings(), &OfArm::among(&trials, arm)));
    let [base, unmapped] = found.each_ref().map(|one| one.jit.as_ref().expect("its part"));
    let ratio = unmapped.time_ratio.expect("three rounds");
    assert!(ratio.rounds == 3 && (ratio.ratio - 1.1).abs() < 1e-9 && ratio.is_shown(), "{ratio:?}");
    assert_eq!((base.time_ratio, base.kernel_cost_percent), (None, None));
    // 2 ms of 200, 400 and 20.
    let cost = unmapped.kernel_cost_percent.expect("three rounds").mean;
    assert!((cost - 11.5 / 3.0).abs() < 1e-9, "{cost}");
    assert_eq!(unmapped.work_ms.map(|one| one.max), Some(500.0));
    assert_eq!(unmapped.malloc_freed_bytes.map(|one| one.median), Some(5242880.0));
    assert!(unmapped.peak_resident_bytes.is_none() && found[1].swap.is_none());
    let text = serde_json::to_string(&trials[0]).expect("JSON");
    assert_eq!(serde_json::from_str::<Trial>(&text).expect("a trial"), trials[0]);
}

#[test]
fn ways_by_time_get_the_time() {
    let means = |way: Way| way.means(Duration::from_secs(1));
    assert!(means(Way::JdkInterval).options[1].ends_with("=1000"));
    assert_eq!(means(Way::Marusa).trimmed_every, Some(Duration::from_secs(1)));
    assert!(means(Way::AsItIs).environment.is_empty());
    assert!(means(Way::Unmapped).what.starts_with("MALLOC_MMAP_THRESHOLD_=32000: "));
}
