//! What larger pages are expected to give to a running JVM, from what its threads lose in address translation now. `tlb` shows
//! it; `pages prove` says it before it finds out.

use super::calibrate;
use crate::act::signals::{Waiting, Woken};
use crate::base::{Bytes, Gap, Known, Why};
use crate::map;
use crate::measure::WalkCosts;
use crate::measure::counters::Counters;
use crate::measure::events::{self, EventSet, Model};
use crate::measure::kinds::Kinds;
use crate::measure::predict::{self, Choice, Counted, Layout, Prediction};
use crate::measure::tlb::{self as model, By, Context};
use crate::os::cpu;
use crate::os::perf::Mode;
use crate::os::process::Process;
use crate::snapshot::{self, Want};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// What one reading of the target gives.
pub struct Look {
    pub kinds: Kinds,
    /// Resident bytes by page size.
    pub mapped: Known<BTreeMap<u64, Bytes>>,
    pub layout: Known<Layout>,
}

pub fn look(process: &Process) -> Look {
    let named = |gap: &Gap| Gap { what: format!("mapped page sizes: {}", gap.what), ..gap.clone() };
    let snapshot = match snapshot::take(process, Want::default()) {
        Ok(snapshot) => snapshot,
        Err(gap) => return Look { kinds: Kinds::default(), mapped: Err(named(&gap)), layout: Err(gap) },
    };
    let kinds = snapshot.jvm.as_ref().map_or_else(|_| Kinds::default(), |jvm| Kinds::new(&jvm.threads));
    let map = map::join(&snapshot);
    let layout = Ok(predict::layout(&snapshot, &map));
    let mapped = snapshot.os.pages.as_ref().map(|_| map.balance.total.by_page_size).map_err(named);
    Look { kinds, mapped, layout }
}

/// What one walk costs, for a footprint as large as what is resident.
pub fn walk_costs(set: &EventSet, mapped: &Known<BTreeMap<u64, Bytes>>) -> Known<WalkCosts> {
    if set.model != Model::Calibrated {
        return Err(
            Gap::new("cost of a walk", Why::NotRead).hint("not needed: this processor counts the time")
        );
    }
    let resident =
        mapped.as_ref().ok().map(|sizes| sizes.values().fold(0, |sum: u64, next| sum.saturating_add(*next)));
    Ok(calibrate::cached()?.walk_costs(resident))
}

/// What 2 MiB pages under all that may lie on them would give, from counting for this long. `Err`: the wait was cut short.
pub fn transparent(
    process: &Process,
    waiting: &Waiting,
    length: Duration,
) -> Result<Known<Prediction>, Woken> {
    let looked = look(process);
    let layout = match &looked.layout {
        Ok(layout) => layout,
        Err(gap) => return Ok(Err(gap.clone())),
    };
    let counted = count(process, waiting, length, &looked)?;
    let predictions = predict::predict(layout, &counted, &calibrate::cached());
    let missing = || Gap::new("2 MiB pages", Why::NotInThisRuntime);
    Ok(predictions.into_iter().find(|one| one.choice == Choice::Transparent).ok_or_else(missing))
}

fn count(
    process: &Process,
    waiting: &Waiting,
    length: Duration,
    looked: &Look,
) -> Result<Known<Vec<Counted>>, Woken> {
    let cpu = cpu::read();
    let opened = events::choose(&cpu).and_then(|set| {
        let counters = Counters::open(process, set.clone(), &[Mode::User, Mode::Kernel])?;
        Ok((set, counters))
    });
    let (set, mut counters) = match opened {
        Ok(opened) => opened,
        Err(gap) => return Ok(Err(gap)),
    };
    match waiting.until(Instant::now() + length) {
        Woken::Time => {}
        woken => return Err(woken),
    }
    let slots = counters.slots().to_vec();
    let context = Context {
        costs: walk_costs(&set, &looked.mapped),
        mapped: looked.mapped.clone(),
        has_hypervisor: cpu.has_hypervisor,
    };
    let report = model::report(&counters.turn(), &set, &slots, &looked.kinds, By::Kind, &context);
    Ok(Ok(predict::counted(&report)))
}
