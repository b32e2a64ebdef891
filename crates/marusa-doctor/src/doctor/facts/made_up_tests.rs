//! Facts that are made up, for the tests of rules: a host and a JVM of which no rule may say a word. A test changes what its
//! rule is about, and nothing else: fields are plain.
//!
//! The account is a real join of a small snapshot, so that what a rule reads of `map`, `areas`, `smaps` and the allocator
//! agrees. Who changes `snapshot` calls `joined`; who only needs a larger sum calls `set_resident`.

#[path = "made_up/host_tests.rs"]
mod host;
#[path = "made_up/laid_tests.rs"]
mod laid;
#[path = "made_up/views_tests.rs"]
mod views;

pub use host::healthy_host;
pub use laid::{CODE_HEAPS, HEAP, MAIN_ARENA, THREAD_ARENA};

use super::{Facts, JvmFacts};
use crate::base::{Addr, Bytes, Range};
use crate::doctor::{CATALOG, Finding};
use crate::jvm::{Held, JvmView};
use crate::map::{Account, Area, Figures, Instance, Owner, Share, Span};
use crate::os::cpus::Cpus;
use marusa_account::alloc::AllocView;
use std::collections::BTreeMap;

pub const M: Bytes = 1 << 20;
pub const G: Bytes = 1 << 30;
pub const PID: i32 = 4711;

/// What the rule of this id says.
pub fn rule_finds(id: &str, facts: &Facts) -> Vec<Finding> {
    let entry = CATALOG.iter().find(|entry| entry.rule.id == id).expect("a rule");
    entry.rule.find(facts)
}

/// A host and its one JVM.
pub fn healthy() -> Facts {
    Facts { host: healthy_host(), jvms: vec![healthy_jvm()] }
}

/// JDK 21 with G1 and -Xmx2g, on its way: Java threads, two arenas of glibc, 8 MiB of malloc's memory freed.
pub fn healthy_jvm() -> JvmFacts {
    let mut jvm = JvmFacts::of(PID, laid::snapshot(), None);
    jvm.cpus = Ok(Cpus { allowed: 4, quota: None });
    jvm.group = Ok(None);
    jvm.environment = Ok(BTreeMap::new());
    jvm.gaps.clear();
    jvm
}

/// The account of a snapshot that was changed; what is not in the snapshot stays.
pub fn joined(jvm: &JvmFacts) -> JvmFacts {
    let new = JvmFacts::of(jvm.pid, jvm.snapshot.clone(), None);
    JvmFacts { map: new.map, account: new.account, ..jvm.clone() }
}

/// Has that many bytes of an area resident, on small pages, as one part more in `map` and `account`.
pub fn set_resident(jvm: &mut JvmFacts, area: Area, bytes: Bytes) {
    for span in &mut jvm.map.spans {
        for share in span.shares.iter_mut().filter(|share| jvm.map.owners[share.owner].area == area) {
            let reserved = share.figures.reserved;
            share.figures = Figures { reserved, committed: reserved, ..Figures::default() };
        }
    }
    let resident = |bytes| Figures {
        reserved: bytes,
        committed: bytes,
        resident: bytes,
        proportional: bytes,
        anonymous: bytes,
        by_page_size: [(4096, bytes)].into(),
        ..Figures::default()
    };
    let end = jvm.map.spans.last().map_or(Addr(0), |span| span.range.end);
    let owner =
        Owner { area, part: "made up".to_string(), instance: Instance::None, how: "made up".to_string() };
    jvm.map.owners.push(owner);
    jvm.map.in_use.push(None);
    let owner = jvm.map.owners.len() - 1;
    let mapping = jvm.map.spans.last().map_or(0, |span| span.mapping);
    let shares = vec![Share { owner, figures: resident(bytes) }];
    jvm.map.spans.push(Span { range: Range::sized(end, bytes), mapping, shares });
    let mut total = Figures::default();
    jvm.map.spans.iter().flat_map(|span| &span.shares).for_each(|share| total.add(&share.figures));
    jvm.map.balance.kernel_resident = Some(total.resident);
    jvm.map.balance.total = total;
    recount(jvm);
}

/// The account of a changed `map`.
pub fn recount(jvm: &mut JvmFacts) {
    jvm.account = Account::of(&jvm.snapshot, &jvm.map);
}

/// Sets flags of the VM: `set_flags(&mut jvm, &[("UseLargePages", "true")])`.
pub fn set_flags(jvm: &mut JvmFacts, flags: &[(&str, &str)]) {
    if let Ok(view) = &mut jvm.snapshot.jvm {
        view.flags.extend(flags.iter().map(|(name, value)| (name.to_string(), value.to_string())));
    }
}

/// The view of the VM, to be changed.
pub fn view(jvm: &mut JvmFacts) -> &mut JvmView {
    jvm.snapshot.jvm.as_mut().expect("it was made up")
}

/// That of malloc.
pub fn alloc(jvm: &mut JvmFacts) -> &mut AllocView {
    jvm.snapshot.alloc.as_mut().expect("it was made up")
}

/// A row of `map --by holder`.
pub fn held(holder: &str, bytes: Bytes, blocks: u64, direct_blocks: u64) -> Held {
    let (direct_bytes, direct_blocks) = (Some(bytes / 2), Some(direct_blocks));
    Held { blocks, kind: None, direct_bytes, direct_blocks, ..Held::made_up(holder, bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::{Level, examine};
    use crate::map::law;

    #[test]
    fn no_rule_has_a_word_to_say_of_what_is_healthy() {
        let findings = examine(&healthy(), &[]);
        let bad: Vec<_> = findings.iter().filter(|finding| finding.level > Level::Info).collect();
        assert!(bad.is_empty(), "{bad:#?}");
    }

    #[test]
    fn what_is_made_up_agrees_with_itself() {
        let jvm = healthy_jvm();
        law::check(&jvm.map, &jvm.snapshot).expect("the books balance");
        assert_eq!(jvm.map.balance.difference(), Some(0));
        assert_eq!(jvm.map.balance.unattributed, 0);
        assert!(jvm.map.gaps.is_empty(), "{:?}", jvm.map.gaps);
        assert_eq!(jvm.area(Area::JavaHeap).resident_bytes, 900 * M);
        assert_eq!(jvm.area(Area::MallocFreed).resident_bytes, 8 * M);
        let mut larger = healthy_jvm();
        set_resident(&mut larger, Area::DirectBuffers, 64 * M);
        assert_eq!(larger.resident_bytes(), jvm.resident_bytes() + 64 * M);
        assert_eq!(joined(&larger).area(Area::DirectBuffers).resident_bytes, 0);
    }
}
