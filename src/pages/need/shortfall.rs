//! Which reservations come to lie on smaller pages when the pool has too few: a reservation gets all its pages or none, in the
//! order in which the JVM makes them, and what comes later may still fit.

use super::{PAGE_1G, PAGE_2M};
use crate::base::Bytes;
use crate::map::Area;
use crate::pages::types::{Need, Without};
use serde::{Deserialize, Serialize};

/// One reservation that does not get its pages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shortfall {
    /// Index into the needs.
    pub need: usize,
    pub area: Area,
    pub part: String,
    pub bytes: Bytes,
    pub page_bytes: Bytes,
    /// Pages that were there when it asked.
    pub free_pages: u64,
    /// Pages of `page_bytes` that it lacks.
    pub lacks_pages: u64,
    /// The pages that it gets instead; `None` where the VM does not start.
    pub gets_page_bytes: Option<Bytes>,
    pub without: Without,
    /// False where the place of a mapping, or the growth of the heap, decides.
    pub certain: bool,
}

/// What falls short with `pages_2m` and `pages_1g` free pages. Ends where the VM does.
pub fn shortfall(needs: &[Need], pages_2m: u64, pages_1g: u64) -> Vec<Shortfall> {
    let mut free = [(PAGE_1G, pages_1g), (PAGE_2M, pages_2m)];
    let mut found = Vec::new();
    for (index, need) in needs.iter().enumerate() {
        let Some(slot) = free.iter_mut().find(|(page, _)| *page == need.page_bytes) else { continue };
        if need.pages <= slot.1 {
            slot.1 -= need.pages;
            continue;
        }
        let mut short = Shortfall {
            need: index,
            area: need.area,
            part: need.part.clone(),
            bytes: need.bytes,
            page_bytes: need.page_bytes,
            free_pages: slot.1,
            lacks_pages: need.pages - slot.1,
            gets_page_bytes: Some(crate::os::machine::base_page()),
            without: need.without,
            certain: need.pages_at_least > slot.1,
        };
        match need.without {
            Without::VmExits => short.gets_page_bytes = None,
            // What there is, on its own pages: the heap has just become smaller.
            Without::HeapShrinks => {
                short.gets_page_bytes = Some(need.page_bytes);
                slot.1 = 0;
            }
            Without::NextSmaller => {
                let pages = need.bytes / PAGE_2M;
                if pages <= free[1].1 {
                    free[1].1 -= pages;
                    short.gets_page_bytes = Some(PAGE_2M);
                }
            }
            Without::SmallPages if !short.certain => slot.1 -= need.pages_at_least.min(slot.1),
            Without::SmallPages => {}
        }
        let ends = short.gets_page_bytes.is_none() && short.certain;
        found.push(short);
        if ends {
            break;
        }
    }
    found
}
