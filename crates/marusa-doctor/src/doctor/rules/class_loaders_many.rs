//! Thousands of class loaders of one class, or class metadata that is most of what is resident.

use crate::base::printable::escaped;
use crate::base::{Bytes, human};
use crate::doctor::{Cost, Evidence, Finding, JvmFacts, Level, Remedy};
use crate::jvm::ClassView;
use crate::map::Area;

/// A large application server has 300 MiB in 30,000 classes, most of what is resident only next to a tiny heap.
const INFO_BYTES: Bytes = 384 << 20;
const INFO_PERCENT: f64 = 40.0;
const WARN_BYTES: Bytes = 512 << 20;
const WARN_PERCENT: f64 = 60.0;
/// Loaders of one class: frameworks make some hundreds, one for each plugin or script.
const WARN_LOADERS: u64 = 4_000;

pub(super) fn find(jvm: &JvmFacts) -> Option<Finding> {
    let bytes = jvm.area(Area::ClassMetadata).resident_bytes;
    let percent = jvm.percent_of_resident(bytes);
    let classes = jvm.jvm()?.classes.as_ref().ok()?;
    let of_one = of_one_class(classes);
    let level = match bytes {
        _ if of_one.as_ref().is_some_and(|(_, count)| *count >= WARN_LOADERS) => Level::Warn,
        WARN_BYTES.. if percent >= WARN_PERCENT => Level::Warn,
        INFO_BYTES.. if percent >= INFO_PERCENT => Level::Info,
        _ => return None,
    };
    let mut evidence =
        vec![Evidence::bytes("class metadata, in memory", bytes, "the account: class_metadata")];
    let counts = [
        ("class loaders", classes.loaders.as_ref().ok().copied(), "ClassLoaderDataGraph"),
        ("classes", classes.classes.as_ref().ok().copied(), "ClassLoaderDataGraph"),
        ("classes unloaded since the start", classes.unloaded_classes, "performance counters of the VM"),
        ("collections of the whole heap", classes.old_collections, "performance counters of the VM"),
    ];
    evidence.extend(
        counts.into_iter().filter_map(|(what, count, source)| Some(Evidence::count(what, count?, source))),
    );
    let held = if is_held(classes) == Some(true) { "held " } else { "" };
    let loaders = match &of_one {
        Some((class, count)) => {
            format!("about {count} {held}class loaders of {} and their classes: ", escaped(class))
        }
        None => String::new(),
    };
    let title = format!("{loaders}class metadata holds {}, {percent:.0} % of what is resident", human(bytes));
    let remedies =
        [remedy(classes, of_one), Remedy::Command(format!("jcmd {} VM.classloader_stats", jvm.pid))];
    Some(Finding::on_jvm(jvm.pid, level, title, evidence, remedies).costing(Cost::bytes(bytes)))
}

fn remedy(classes: &ClassView, of_one: Option<(String, u64)>) -> Remedy {
    let class = of_one.map_or("loader".to_string(), |(class, _)| escaped(&class).into_owned());
    Remedy::Advice(match is_held(classes) {
        Some(true) => format!(
            "collections did not unload them, so they are held: find the path from a {class} to a root in a heap dump (`jcmd PID \
             GC.heap_dump FILE`): a cache, a registry, a thread-local, a context class loader"
        ),
        _ => format!(
            "find what makes each {class}; whether they are held shows after a full collection (`jcmd PID GC.run`)"
        ),
    })
}

/// The class that most of the loaders have, and about how many of them.
fn of_one_class(classes: &ClassView) -> Option<(String, u64)> {
    let (named, loaders) = (classes.loader_classes.as_ref()?, *classes.loaders.as_ref().ok()?);
    let (class, count) = named.by_class.iter().max_by_key(|(_, count)| **count)?;
    let is_most = *count >= named.looked_at / 2;
    is_most.then(|| {
        (
            class.clone(),
            (u128::from(loaders) * u128::from(*count) / u128::from(named.looked_at.max(1))) as u64,
        )
    })
}

/// Whether collections of the whole heap left nearly all classes; `None`: not known.
pub fn is_held(classes: &ClassView) -> Option<bool> {
    let (loaded, unloaded) = (*classes.classes.as_ref().ok()?, classes.unloaded_classes?);
    (classes.old_collections? > 0).then_some(unloaded < loaded / 10)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::facts::made_up::{M, healthy_jvm, set_resident, view};
    use crate::jvm::LoaderClasses;

    fn with_loaders(loaders: u64, unloaded: u64, of_one: u64) -> Option<Finding> {
        let mut jvm = healthy_jvm();
        let classes = view(&mut jvm).classes.as_mut().expect("made up");
        (classes.loaders, classes.unloaded_classes) = (Ok(loaders), Some(unloaded));
        let by_class = [("app.PluginLoader".to_string(), of_one)].into();
        classes.loader_classes = Some(LoaderClasses { looked_at: 500, by_class });
        find(&jvm)
    }

    #[test]
    fn loaders_of_one_class_are_named_and_said_to_be_held() {
        assert_eq!(with_loaders(3_999, 0, 500), None);
        assert_eq!(with_loaders(40_000, 0, 249), None, "of many classes");
        let held = with_loaders(4_000, 0, 500).expect("4,000");
        assert_eq!(held.level, Level::Warn);
        assert!(
            held.title.starts_with("about 4000 held class loaders of app.PluginLoader"),
            "{}",
            held.title
        );
        let dropped = with_loaders(4_000, 11_000, 500).expect("4,000");
        assert!(!dropped.title.contains("held"), "{}", dropped.title);
    }

    #[test]
    fn both_the_bytes_and_the_share_must_be_large() {
        let level = |bytes, resident| {
            let mut jvm = healthy_jvm();
            set_resident(&mut jvm, Area::ClassMetadata, bytes);
            jvm.account.totals.resident_bytes = resident;
            find(&jvm).map(|finding| finding.level)
        };
        assert_eq!(find(&healthy_jvm()), None);
        assert_eq!((level(383 * M, 400 * M), level(390 * M, 1000 * M)), (None, None));
        assert_eq!(level(500 * M, 800 * M), Some(Level::Info));
        assert_eq!(
            (level(600 * M, 1001 * M), level(600 * M, 1000 * M)),
            (Some(Level::Info), Some(Level::Warn))
        );
    }
}
