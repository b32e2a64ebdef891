//! Which reservations come to lie on smaller pages when the pool has too few: a reservation gets all its pages or none, in the
//! order in which the JVM makes them, and what comes later may still fit.

use crate::base::Bytes;
use crate::os::machine::base_page;
use crate::pages::types::{Need, PAGE_1G, PAGE_2M, Without};

/// One reservation that does not get its pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shortfall<'a> {
    pub need: &'a Need,
    /// The pages that it gets instead; `None` where the VM does not start.
    pub gets_page_bytes: Option<Bytes>,
    /// False where the place of a mapping, or the growth of the heap, decides.
    pub certain: bool,
}

/// What falls short with `pages_2m` and `pages_1g` free pages. Ends where the VM does.
pub fn shortfall(needs: &[Need], pages_2m: u64, pages_1g: u64) -> Vec<Shortfall<'_>> {
    let mut free = [(PAGE_1G, pages_1g), (PAGE_2M, pages_2m)];
    let mut found = Vec::new();
    for need in needs {
        let Some(slot) = free.iter_mut().find(|(page, _)| *page == need.page_bytes) else { continue };
        if need.pages <= slot.1 {
            slot.1 -= need.pages;
            continue;
        }
        let certain = need.pages_at_least > slot.1;
        let mut gets_page_bytes = Some(base_page());
        match need.without {
            Without::VmExits => gets_page_bytes = None,
            // What there is, on its own pages: the heap has just become smaller.
            Without::HeapShrinks => {
                gets_page_bytes = Some(need.page_bytes);
                slot.1 = 0;
            }
            Without::NextSmaller => {
                let pages = need.bytes / PAGE_2M;
                if pages <= free[1].1 {
                    free[1].1 -= pages;
                    gets_page_bytes = Some(PAGE_2M);
                }
            }
            Without::SmallPages if !certain => slot.1 -= need.pages_at_least.min(slot.1),
            Without::SmallPages => {}
        }
        found.push(Shortfall { need, gets_page_bytes, certain });
        if gets_page_bytes.is_none() && certain {
            break;
        }
    }
    found
}
