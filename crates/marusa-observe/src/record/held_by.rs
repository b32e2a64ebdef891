//! Who holds what grows: of an area that malloc's blocks lie in, the holders that grow with it, of class metadata the class
//! loaders, and of the Java heap the classes. They are judged as areas are, holders by the accounts that have them (`record
//! --holders-every`), classes by the histograms (`--heap-every`). A recording does not say which holder's blocks lie in which
//! area, so one is named where it grows by a fair part of the area's growth.
//!
//! A histogram counts dead objects too. So a class is judged by its objects that are older than the last collection, where the
//! collector tells them apart, and it must have grown all the time.

use super::headline;
use super::history::History;
use super::key::{Key, Measure, Named, Subject};
use super::leak_row::{Holder, Row, What};
use super::leak_series::{self, Accounts};
use crate::jvm::{HOLDER_UNKNOWN, VM_HOLDER};
use crate::map::Area;
use crate::map::heap::{self, OTHER_CLASSES};
use crate::measure::growth::{self, Nature, Point, Verdict};
use std::cmp::Reverse;

/// Areas whose bytes are in blocks of malloc that are in use.
const OF_BLOCKS: [Area; 4] = [Area::MallocUnknown, Area::DirectBuffers, Area::NativeLibrary, Area::JvmWork];
/// A holder that grows by less than this share of its area's growth is not named.
const NAMED_SHARE: f64 = 0.2;
const NAMED_MAX: usize = 3;
/// Holders that are judged: the ones that grew most.
const JUDGED_MAX: usize = 20;
/// Fewer histograms say nothing of a class.
const HISTOGRAMS_MIN: usize = 3;
/// Among fewer than these, each must be above the one before: there is no trend in so few.
const SORTED_BELOW: usize = 8;
/// The program's own class that has grown most in number is named from this share of the instances of the fastest class on: what
/// it holds, arrays and nodes of collections, takes more bytes than it.
const OWN_SHARE: f64 = 0.01;

impl Holder {
    fn grows(&self) -> bool {
        self.is_rising() && !self.growth.is_small
    }

    fn is_rising(&self) -> bool {
        let is_rising = self.growth.rate.is_none_or(|rate| rate.low_bytes_per_hour > 0.0);
        self.growth.verdict != Verdict::LevelsOff && is_rising && self.pace() > 0.0
    }

    fn is_own_class(&self) -> bool {
        self.kind == Named::Class && heap::is_of_program(&self.name)
    }
}

/// Whether malloc's blocks in use lie in it.
pub fn is_of_blocks(what: &What) -> bool {
    matches!(what, What::Area(area) if OF_BLOCKS.contains(area))
}

fn is_of_loaders(what: &What) -> bool {
    *what == What::Area(Area::ClassMetadata)
}

/// Whether the objects of the heap are in it.
pub fn is_of_objects(what: &What) -> bool {
    matches!(what, What::HeapInUse | What::Area(Area::JavaHeap))
}

/// Whether it is known how much of the heap is alive.
fn knows_live(row: &Row) -> bool {
    let unseen = Some(growth::Caveat::NoCollectionSeen);
    row.what == What::HeapInUse && row.growth.caveat != unseen && row.growth.rate.is_some()
}

/// Names the holders of the rows that grow, the fastest first.
pub fn mark(history: &History, is_within: impl Fn(usize) -> bool, nature: Nature, rows: &mut [Row]) {
    let holders = Accounts::of_clock(history, Measure::HoldersAt, &is_within);
    mark_by(history, &holders, nature, rows, Named::Holder, &|row| is_of_blocks(&row.what));
    let accounts = Accounts::of(history, &is_within);
    mark_by(history, &accounts, nature, rows, Named::Loader, &|row| is_of_loaders(&row.what));
    let classes = Accounts::of_clock(history, Measure::ClassesAt, &is_within);
    if classes.len() < HISTOGRAMS_MIN {
        return;
    }
    let nature = nature_of_classes(history, is_within, nature);
    // Before a whole collection, what is in use after the others has much that died after it was promoted.
    let is_named =
        |row: &Row| row.what == What::HeapInUse && (!nature.is_collected || headline::may_be_named(row));
    let is_area = |row: &Row| {
        row.what == What::Area(Area::JavaHeap) && row.growth.grown_seconds >= headline::HEAP_SECONDS_MIN
    };
    if rows.iter().any(is_named) {
        mark_by(history, &classes, nature, rows, Named::Class, &is_named);
    } else if !rows.iter().any(knows_live) {
        mark_by(history, &classes, nature, rows, Named::Class, &is_area);
    }
}

/// As long as no collection of the whole heap has been seen, what rises may be dead.
pub fn nature_of_classes(history: &History, is_within: impl Fn(usize) -> bool, plain: Nature) -> Nature {
    Nature { is_collected: !leak_series::heap_after_collections(history, is_within).1, ..plain }
}

/// The figures by which one is judged: of a class, if they are known, those of objects that are older than the last collection.
pub fn series(accounts: &Accounts, subject: &Subject, measure: Measure) -> Vec<Point> {
    let survived = match measure {
        Measure::InUse if subject.is_named(Named::Class) => Some(Measure::SurvivedBytes),
        Measure::Instances => Some(Measure::SurvivedInstances),
        _ => None,
    };
    let survived = survived.map_or(Vec::new(), |measure| accounts.series(&Key::of(subject, measure)));
    if survived.is_empty() { accounts.series(&Key::of(subject, measure)) } else { survived }
}

fn mark_by(
    history: &History,
    accounts: &Accounts,
    nature: Nature,
    rows: &mut [Row],
    kind: Named,
    is_of: &dyn Fn(&Row) -> bool,
) {
    if !rows.iter().any(is_of) {
        return;
    }
    let mut holders: Vec<Holder> = judged(history, accounts, nature, kind);
    let own = own_class(&holders);
    holders.retain(Holder::grows);
    holders.sort_by(|one, other| other.pace().total_cmp(&one.pace()));
    // A heap that may not grow at all has no class that grows with it.
    let may_grow =
        |row: &Row| kind != Named::Class || row.growth.rate.is_some_and(|rate| rate.low_bytes_per_hour > 0.0);
    for row in rows.iter_mut().filter(|row| is_of(row) && may_grow(row)) {
        let least = row.pace() * NAMED_SHARE;
        let named = holders.iter().filter(|holder| least > 0.0 && holder.pace() >= least);
        row.held_by = named.take(NAMED_MAX).cloned().collect();
        own.iter().for_each(|own| add_own(&mut row.held_by, own));
    }
}

/// The class of the program's own that has grown most in number.
fn own_class(holders: &[Holder]) -> Option<Holder> {
    let own = holders.iter().filter(|holder| holder.is_own_class() && holder.is_rising());
    own.max_by_key(|holder| holder.count_grown).cloned()
}

fn add_own(named: &mut Vec<Holder>, own: &Holder) {
    let most = named.iter().filter_map(|holder| holder.count_grown).max();
    let most = most.filter(|_| !named.iter().any(Holder::is_own_class));
    if most.zip(own.count_grown).is_some_and(|(most, own)| own > 0 && own as f64 >= most as f64 * OWN_SHARE) {
        named.truncate(NAMED_MAX - 1);
        named.push(own.clone());
    }
}

/// The ones that grew most, without the VM: that it holds its own blocks explains nothing.
fn judged(history: &History, accounts: &Accounts, nature: Nature, kind: Named) -> Vec<Holder> {
    let mut grown: Vec<(Reverse<u64>, &Key)> = Vec::new();
    let keys = history.keys().iter();
    for key in keys.filter(|key| key.subject.is_named(kind) && key.measure == kind.size()) {
        let points = series(accounts, &key.subject, kind.size());
        let Some((first, last)) = points.first().zip(points.last()) else { continue };
        let may_grow = kind != Named::Class || has_risen(&points);
        if last.bytes > first.bytes && may_grow && !explains_nothing(&key.subject) {
            grown.push((Reverse((last.bytes - first.bytes) as u64), key));
        }
    }
    grown.sort_unstable();
    let holder = |(_, key): (Reverse<u64>, &Key)| {
        let counts = series(accounts, &key.subject, kind.count());
        let counts = counts.first().zip(counts.last());
        Some(Holder {
            kind,
            name: key.subject.name()?,
            growth: growth::judge(&series(accounts, &key.subject, kind.size()), nature),
            count_grown: counts.map(|(first, last)| (last.bytes - first.bytes) as i64),
        })
    };
    grown.into_iter().take(JUDGED_MAX).filter_map(holder).collect()
}

/// Whether a class rises all the time: of few figures each is above the one before, of more the lowest of each third is above that
/// of the third before, for what died falls now and then.
fn has_risen(points: &[Point]) -> bool {
    let parts = if points.len() < SORTED_BELOW { points.len() } else { 3 };
    let low = |part: usize| {
        let part = &points[part * points.len() / parts..(part + 1) * points.len() / parts];
        part.iter().map(|point| point.bytes).fold(f64::INFINITY, f64::min)
    };
    points.len() >= HISTOGRAMS_MIN && (0..parts).is_sorted_by(|one, other| low(*one) < low(*other))
}

/// The VM's own blocks, and the sum of the small classes, are what no one can look for.
fn explains_nothing(subject: &Subject) -> bool {
    matches!(subject, Subject::Named(_, name) if [VM_HOLDER, HOLDER_UNKNOWN, OTHER_CLASSES].contains(&&**name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::headline::Headline;
    use crate::record::leaks;
    use crate::record::writer::{JvmFacts, Scope, Session, Writer};
    use crate::record::{Moment, reader};

    const MB: u64 = 1 << 20;

    /// Accounts each 10 s, each sixth with holders. An area grows by six mebibytes a minute, held by two fields.
    fn history(seconds: u64) -> History {
        let mut writer = Writer::new(&Session::default());
        let jvm = writer.jvm(JvmFacts::default());
        for second in (0..seconds).step_by(10) {
            let steady_ms = second * 1000;
            let area = |area| Key::of(&Subject::Area(area), Measure::Resident);
            let noise = second * 7919 % 65_536;
            let mut figures = vec![
                (Key::process(Measure::AccountAt), Some(steady_ms)),
                (area(Area::MallocUnknown), Some(100 * MB + second * MB / 10 + noise)),
                (area(Area::ClassMetadata), Some(50 * MB + second * MB / 10 + noise)),
            ];
            for (name, loaders) in [("com.example.PluginLoader", 1 + second / 10), ("<bootstrap>", 1)] {
                let group = Subject::Named(Named::Loader, name.to_string());
                figures.push((Key::of(&group, Measure::Committed), Some(loaders * MB + noise / 2)));
                figures.push((Key::of(&group, Measure::ClassLoaders), Some(loaders)));
            }
            let mut scope = Scope::Account;
            if second % 60 == 0 {
                scope = Scope::AccountWithHolders;
                figures.push((Key::process(Measure::HoldersAt), Some(steady_ms)));
                for (name, bytes) in [
                    ("org.rocksdb.ReadOptions.nativeHandle_", second * MB / 15),
                    ("app.Cache.address", second * MB / 30),
                    ("app.Small.address", second * MB / 600),
                    ("app.Still.address", 900 * MB),
                    (VM_HOLDER, second * MB),
                    (HOLDER_UNKNOWN, second * MB),
                ] {
                    let holder = Subject::Named(Named::Holder, name.to_string());
                    figures.push((Key::of(&holder, Measure::InUse), Some(MB + bytes + noise)));
                    figures.push((Key::of(&holder, Measure::Blocks), Some(bytes / 256)));
                }
            }
            writer.sample(jvm, Moment { steady_ms, wall_ms: steady_ms as i64 }, scope, &figures);
        }
        reader::read(&[&writer.take()]).expect("a recording").jvms.remove(0)
    }

    fn of_area(rows: &[Row], area: Area) -> &Row {
        rows.iter().find(|row| row.what == What::Area(area)).expect("a row")
    }

    #[test]
    fn the_holders_of_what_grows_are_named_the_fastest_first_with_a_verdict_of_their_own() {
        let rows = leaks::judge(&history(7200), 0.0, f64::INFINITY, false);
        let (headline, named) = headline::of(&rows);
        assert_eq!((headline, named.len()), (Headline::Grows, 2));
        let named: Vec<&Row> =
            [Area::MallocUnknown, Area::ClassMetadata].map(|area| of_area(&rows, area)).to_vec();
        let names: Vec<&str> = named[0].held_by.iter().map(|holder| holder.name.as_str()).collect();
        assert_eq!(names, ["org.rocksdb.ReadOptions.nativeHandle_", "app.Cache.address"]);
        let first = &named[0].held_by[0];
        assert_eq!(first.growth.verdict, Verdict::GrowsWithoutBound);
        assert!((first.pace() / MB as f64 - 240.0).abs() < 5.0, "{first:?}");
        assert_eq!(first.count_grown, Some((7140 * MB / 15 / 256) as i64));
        let loaders = &named[1].held_by[..];
        assert_eq!((loaders.len(), loaders[0].name.as_str()), (1, "com.example.PluginLoader"));
        assert_eq!((loaders[0].kind, loaders[0].count_grown), (Named::Loader, Some(719)));
        assert!((loaders[0].pace() / MB as f64 - 360.0).abs() < 5.0, "{loaders:?}");
        let others = rows.iter().filter(|row| !is_of_blocks(&row.what) && !is_of_loaders(&row.what));
        assert!(others.into_iter().all(|row| row.held_by.is_empty()));
    }

    #[test]
    fn they_are_named_while_it_is_too_early_for_a_verdict_and_not_without_growth() {
        let early = leaks::judge(&history(300), 0.0, f64::INFINITY, false);
        let row = of_area(&early, Area::MallocUnknown);
        assert_eq!((row.growth.verdict, row.held_by.len()), (Verdict::CannotTellYet, 2), "{row:?}");
        let one = leaks::judge(&history(50), 0.0, f64::INFINITY, false);
        assert!(of_area(&one, Area::MallocUnknown).held_by.is_empty(), "one account has holders");
    }
}
