//! The collectors by the names that people write, the options that choose them, and which JDK has which.
//!
//! JEP 333, 377, 439, 474, 490 (ZGC: experimental in 11, product in 15, generations in 21, the default in 23, the only way in 24);
//! JEP 189, 379, 404, 521 (Shenandoah: 12, product in 15, in 8 and 11 where the builder put it, generations in 24 and 25); JEP 363
//! (CMS left in 14); JEP 318 (Epsilon, 11); JEP 248 (G1 is the default from 9).

use crate::base::Refused;
use crate::jvm::Gc;
use std::collections::BTreeMap;

const NAMES: [(&str, Gc); 13] = [
    ("serial", Gc::Serial),
    ("parallel", Gc::Parallel),
    ("cms", Gc::Cms),
    ("g1", Gc::G1),
    ("z", Gc::Z),
    ("zgc", Gc::Z),
    ("z-generational", Gc::ZGenerational),
    ("zgc-generational", Gc::ZGenerational),
    ("zgc generational", Gc::ZGenerational),
    ("shenandoah", Gc::Shenandoah),
    ("shenandoah-generational", Gc::ShenandoahGenerational),
    ("shenandoah generational", Gc::ShenandoahGenerational),
    ("epsilon", Gc::Epsilon),
];

/// The collector that a user names, for HotSpot of this release. "zgc" is what the JDK gives under that name.
pub fn named(text: &str, feature: u32) -> Result<Gc, Refused> {
    let lower = text.to_ascii_lowercase();
    let found = NAMES.iter().find(|(name, _)| *name == lower).map(|(_, gc)| *gc);
    let gc = found.ok_or_else(|| {
        format!(
            "'{text}' is not a collector: serial, parallel, cms, g1, zgc, zgc-generational, shenandoah, \
             shenandoah-generational, epsilon"
        )
    })?;
    let gc = if gc == Gc::Z && feature >= 23 && lower != "z" { Gc::ZGenerational } else { gc };
    options(gc, feature).map(|_| gc)
}

/// The options that choose it; an error where this release has no such collector.
pub fn options(gc: Gc, feature: u32) -> Result<Vec<String>, Refused> {
    let lacks = |since: &str| Err(format!("JDK {feature} has no {} collector: {since}", gc.name()).into());
    let unlock = "-XX:+UnlockExperimentalVMOptions";
    let words: &[&str] = match gc {
        Gc::Serial => &["-XX:+UseSerialGC"],
        Gc::Parallel => &["-XX:+UseParallelGC"],
        Gc::G1 => &["-XX:+UseG1GC"],
        Gc::Cms if feature >= 14 => return lacks("it left with 14"),
        Gc::Cms => &["-XX:+UseConcMarkSweepGC"],
        Gc::Z if feature < 11 => return lacks("it came with 11"),
        Gc::Z if feature < 15 => &[unlock, "-XX:+UseZGC"],
        Gc::Z if feature < 21 => &["-XX:+UseZGC"],
        Gc::Z if feature < 24 => &["-XX:+UseZGC", "-XX:-ZGenerational"],
        Gc::Z => return lacks("from 24 on it has generations, zgc-generational"),
        Gc::ZGenerational if feature < 21 => return lacks("it came with 21"),
        Gc::ZGenerational if feature < 23 => &["-XX:+UseZGC", "-XX:+ZGenerational"],
        Gc::ZGenerational => &["-XX:+UseZGC"],
        Gc::Shenandoah if feature < 15 => &[unlock, "-XX:+UseShenandoahGC"],
        Gc::Shenandoah => &["-XX:+UseShenandoahGC"],
        Gc::ShenandoahGenerational if feature < 24 => return lacks("it came with 24"),
        Gc::ShenandoahGenerational if feature < 25 => {
            &[unlock, "-XX:+UseShenandoahGC", "-XX:ShenandoahGCMode=generational"]
        }
        Gc::ShenandoahGenerational => &["-XX:+UseShenandoahGC", "-XX:ShenandoahGCMode=generational"],
        Gc::Epsilon if feature < 11 => return lacks("it came with 11"),
        Gc::Epsilon => &[unlock, "-XX:+UseEpsilonGC"],
    };
    Ok(words.iter().map(|word| word.to_string()).collect())
}

/// The VM's own choice: `GCConfig::select_gc_ergonomically`; a machine with two CPUs and 1,792 MB is a server
/// (`os::is_server_class_machine`).
pub fn default(feature: u32, cpus: u32, memory_bytes: u64) -> Gc {
    match (cpus >= 2 && memory_bytes >= 1792 << 20, feature) {
        (false, ..=26) => Gc::Serial,
        (true, ..=8) => Gc::Parallel,
        _ => Gc::G1,
    }
}

/// The collector that the flags of a VM select.
pub fn of_flags(flags: &BTreeMap<String, String>, feature: u32) -> Option<Gc> {
    let is_on = |name: &str| flags.get(name).is_some_and(|value| value == "true");
    let generational = flags.get("ShenandoahGCMode").is_some_and(|mode| mode == "generational");
    Some(match () {
        () if is_on("UseG1GC") => Gc::G1,
        () if is_on("UseParallelGC") => Gc::Parallel,
        () if is_on("UseConcMarkSweepGC") => Gc::Cms,
        () if is_on("UseZGC") && (feature >= 24 || is_on("ZGenerational")) => Gc::ZGenerational,
        () if is_on("UseZGC") => Gc::Z,
        () if is_on("UseShenandoahGC") && generational => Gc::ShenandoahGenerational,
        () if is_on("UseShenandoahGC") => Gc::Shenandoah,
        () if is_on("UseEpsilonGC") => Gc::Epsilon,
        () if is_on("UseSerialGC") => Gc::Serial,
        () => return None,
    })
}

/// Whether its heap lies in shared memory of its own (a memfd), which has settings of transparent huge pages of its own.
pub fn is_z(gc: Gc) -> bool {
    matches!(gc, Gc::Z | Gc::ZGenerational)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_by_release() {
        assert_eq!(named("ZGC", 17), Ok(Gc::Z));
        assert_eq!((named("zgc", 25), named("zgc", 21)), (Ok(Gc::ZGenerational), Ok(Gc::Z)));
        assert_eq!(named("cms", 11), Ok(Gc::Cms));
        assert_eq!(named("cms", 17), Err("JDK 17 has no cms collector: it left with 14".into()));
        assert!(named("zgc", 8).is_err() && named("shenandoah-generational", 21).is_err());
        assert!(named("fast", 21).expect_err("none").0.starts_with("'fast' is not a collector"));
    }

    #[test]
    fn every_collector_is_found_again_in_its_flags() {
        for (feature, gc) in
            [(8, Gc::Cms), (21, Gc::ZGenerational), (25, Gc::ShenandoahGenerational), (17, Gc::Z)]
        {
            let options = options(gc, feature).expect("a collector of that release");
            let flag = |option: &String| {
                let text = option.strip_prefix("-XX:")?;
                match text.split_once('=') {
                    Some((name, value)) => Some((name.to_string(), value.to_string())),
                    None => Some((text[1..].to_string(), text.starts_with('+').to_string())),
                }
            };
            assert_eq!(of_flags(&options.iter().filter_map(flag).collect(), feature), Some(gc));
        }
        assert_eq!(of_flags(&BTreeMap::new(), 17), None);
    }

    #[test]
    fn what_nobody_chose() {
        assert_eq!((default(17, 1, 8 << 30), default(17, 2, 8 << 30)), (Gc::Serial, Gc::G1));
        assert_eq!((default(8, 4, 8 << 30), default(11, 4, 1 << 30)), (Gc::Parallel, Gc::Serial));
    }
}
