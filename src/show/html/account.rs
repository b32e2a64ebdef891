//! The parts of a page that are of one moment in full: who it is, the treemap, the picture of pages, the tables.

use super::safe::escaped;
use super::table::{Cell, table};
use super::treemap::{self, Node};
use super::{Moment, Page};
use crate::jvm::{Held, LoaderGroup};
use crate::map::model::{Amounts, ArenaAccount};
use crate::map::{Account, Area, Instance};
use crate::os::cgroup;
use crate::show::units::{human, percent};
use std::collections::BTreeSet;

/// Rows of one table: the largest. The JSON of `map` has all.
const ROWS_MAX: usize = 3_000;

/// Who, when, and the sums that everything else divides.
pub fn summary(account: &Account) -> String {
    let Account { process, taken, totals, .. } = account;
    let mut html = format!("<p class=\"command\"><code>{}</code></p>", escaped(&process.command));
    let mut facts: Vec<String> = vec![format!("pid {}", process.pid), format!("user {}", process.user)];
    facts.extend(process.container.iter().map(|container| format!("container {}", cgroup::short(container))));
    if let Some(jvm) = &account.jvm {
        facts.push(format!("{} {}", jvm.vm, jvm.version.as_deref().unwrap_or("version unknown")));
        facts.push(jvm.gc.as_deref().unwrap_or("collector unknown").to_string());
    }
    facts.push(if taken.at.is_empty() {
        "taken at an unknown time".to_string()
    } else {
        format!("taken {}", taken.at)
    });
    html += &format!("<p class=\"dim\">{}</p>\n<dl class=\"sums\">", escaped(&facts.join(" · ")));
    let known = |bytes: Option<u64>| bytes.map_or("not known".to_string(), human);
    let unattributed = format!(
        "{} ({} %)",
        human(totals.unattributed_bytes),
        percent(totals.unattributed_bytes, totals.resident_bytes)
    );
    for (what, figure) in [
        ("in memory", human(totals.resident_bytes)),
        ("the kernel's figure", known(totals.kernel_resident_bytes)),
        ("reserved", human(totals.reserved_bytes)),
        ("swapped", known(totals.swapped_bytes)),
        ("page tables", known(totals.page_table_bytes)),
        ("unattributed", unattributed),
    ] {
        html += &format!("<div><dt>{what}</dt><dd>{}</dd></div>", escaped(&figure));
    }
    html + "</dl>\n"
}

/// The treemap of the account, or else of the last moment of each history.
pub fn treemap(page: &Page) -> Option<String> {
    let mut areas: Vec<Node> = match &page.moment {
        Some(moment) => moment
            .account
            .areas
            .iter()
            .map(|of| {
                let parts = of.parts.iter().map(|part| (part.part.as_str(), part.amounts.resident_bytes));
                area(of.area, of.amounts.resident_bytes, parts)
            })
            .collect(),
        None => last_moment(page)?,
    };
    areas.retain(|area| area.bytes > 0);
    (!areas.is_empty()).then(|| treemap::treemap(&areas))
}

fn last_moment(page: &Page) -> Option<Vec<Node>> {
    let [history] = page.histories else { return None };
    // The last that could be read.
    let last = history.totals().iter().rposition(Option::is_some)?;
    let of = |wanted: Area| {
        let rows = history.rows.iter().filter(|row| row.area == wanted);
        let parts: Vec<(&str, u64)> =
            rows.map(|row| (row.part.as_str(), row.resident_bytes[last].unwrap_or(0))).collect();
        area(wanted, parts.iter().map(|(_, bytes)| bytes).sum(), parts.into_iter())
    };
    Some(Area::ALL.iter().map(|area| of(*area)).collect())
}

fn area<'a>(area: Area, bytes: u64, parts: impl Iterator<Item = (&'a str, u64)>) -> Node {
    let part = |(part, bytes): (&str, u64)| Node { area, name: part.to_string(), bytes, parts: Vec::new() };
    Node {
        area,
        name: area.title().to_string(),
        bytes,
        parts: parts.map(part).filter(|part| part.bytes > 0).collect(),
    }
}

/// The place for the picture that scripts draw, what can be chosen, and what is to be known of it.
pub fn pages(moment: &Moment) -> Option<String> {
    let grid = moment.grid?;
    let mut html = String::from(
        "<p class=\"needs-script\">Each cell is a block of 2 MiB; a block opens into its 4 KiB pages. Ranges with nothing in \
         memory are folded. Arrow keys move, Enter opens a block, Escape closes it.</p>\n\
         <div class=\"toolbar needs-script\" hidden><label>Colour by <select id=\"grid-by\"><option value=\"owner\">owner</option>\
         <option value=\"size\">page size</option><option value=\"residency\">in memory</option></select></label>\
         <button type=\"button\" id=\"grid-back\" hidden>All blocks</button></div>\n\
         <div id=\"grid-scroll\" class=\"needs-script\" hidden><canvas id=\"grid\" tabindex=\"0\" role=\"img\" \
         aria-label=\"Blocks of the address space\" aria-describedby=\"grid-at\"></canvas></div>\n\
         <p id=\"grid-at\" class=\"needs-script\" role=\"status\" aria-live=\"polite\"></p>\n\
         <ul id=\"grid-legend\" class=\"legend\"></ul>\n",
    );
    if grid.is_coarse {
        html += "<p class=\"dim\">The page map is too fragmented to keep every page: most blocks \
                 have the number of resident pages only.</p>\n";
    }
    if !grid.is_placed {
        html += "<p class=\"dim\">This kernel reports how many pages of a mapping are resident, not \
                 which: they are drawn at its start.</p>\n";
    }
    html += if grid.has_folios {
        "<p class=\"dim\">Page sizes are those of folios, what the kernel allocates as one.</p>\n"
    } else {
        "<p class=\"dim\">Page sizes are what one entry of the page table maps.</p>\n"
    };
    Some(html + "<noscript><p>The picture of pages needs scripts; the tables below do not.</p></noscript>\n")
}

pub fn tables(moment: &Moment) -> String {
    let account = moment.account;
    let mut html = parts(account);
    html += &page_sizes(account);
    html += &arenas(account).unwrap_or_default();
    html += &loaders(account).unwrap_or_default();
    html += &threads(account);
    html += &libraries(account);
    html + &mappings(moment)
}

const FIGURES: [&str; 5] = [">RESIDENT", ">%", ">COMMITTED", ">RESERVED", ">SWAPPED"];

fn figures(amounts: &Amounts, total: u64) -> [Cell; 5] {
    [
        Cell::Bytes(Some(amounts.resident_bytes)),
        Cell::Share(amounts.resident_bytes, total),
        Cell::Bytes(Some(amounts.committed_bytes)),
        Cell::Bytes(Some(amounts.reserved_bytes)),
        Cell::Bytes(amounts.swapped_bytes),
    ]
}

fn columns(first: impl IntoIterator<Item = &'static str>) -> Vec<&'static str> {
    first.into_iter().chain(FIGURES).collect()
}

/// The largest rows, and how many are left out. `rows`: each with its bytes.
fn largest(
    id: &str,
    caption: &str,
    columns: &[&str],
    rows: impl IntoIterator<Item = (u64, Vec<Cell>)>,
) -> String {
    let mut rows: Vec<(u64, Vec<Cell>)> = rows.into_iter().collect();
    rows.sort_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
    let left_out = rows.len().saturating_sub(ROWS_MAX);
    rows.truncate(ROWS_MAX);
    let rows: Vec<Vec<Cell>> = rows.into_iter().map(|(_, cells)| cells).collect();
    table(id, caption, columns, &rows, left_out)
}

fn parts(account: &Account) -> String {
    let total = account.totals.resident_bytes;
    let rows = account.areas.iter().flat_map(|area| area.parts.iter().map(move |part| (area, part)));
    let rows = rows.map(|(area, part)| {
        let names = [Cell::Of(area.area, area.area.title().to_string()), Cell::Text(part.part.clone())];
        let rest = [Cell::Bytes(part.amounts.in_use_bytes), Cell::Text(part.how.join(", "))];
        let cells = names.into_iter().chain(figures(&part.amounts, total)).chain(rest).collect();
        (part.amounts.resident_bytes, cells)
    });
    let mut columns = columns(["AREA", "PART"]);
    columns.extend([">IN USE", "HOW IT IS KNOWN"]);
    largest("parts", "Areas and parts", &columns, rows)
}

fn page_sizes(account: &Account) -> String {
    let total = account.totals.resident_bytes;
    let mut rows = Vec::new();
    for area in &account.areas {
        let sizes: Vec<(String, u64)> = match &area.amounts.by_page_kind {
            Some(kinds) => kinds.iter().map(|(kind, bytes)| (kind.name(), *bytes)).collect(),
            None => area.amounts.by_page_size.iter().map(|(size, bytes)| (human(*size), *bytes)).collect(),
        };
        for (size, bytes) in sizes.into_iter().filter(|(_, bytes)| *bytes > 0) {
            let cells = vec![
                Cell::Of(area.area, area.area.title().to_string()),
                Cell::Text(size),
                Cell::Bytes(Some(bytes)),
                Cell::Share(bytes, total),
            ];
            rows.push((bytes, cells));
        }
    }
    largest("sizes", "Page sizes", &["AREA", "KIND OF PAGE", ">RESIDENT", ">%"], rows)
}

fn arenas(account: &Account) -> Option<String> {
    let row = |arena: &ArenaAccount| {
        let cells = vec![
            Cell::Text(arena.title()),
            Cell::Count(arena.attached_threads),
            Cell::Bytes(Some(arena.resident_bytes)),
            Cell::Bytes(arena.sums.in_use_resident_bytes),
            Cell::Bytes(arena.sums.held_resident_bytes),
            Cell::Bytes(arena.sums.trimmable_bytes),
            Cell::Bytes(arena.sums.overhead_resident_bytes),
        ];
        (arena.resident_bytes, cells)
    };
    let arenas = account.malloc.as_ref().map(|malloc| &malloc.arenas).filter(|arenas| !arenas.is_empty())?;
    let columns = ["ARENA", ">THREADS", ">RESIDENT", ">IN USE", ">FREED", ">TRIMMABLE", ">OVERHEAD"];
    Some(largest("arenas", "malloc's arenas", &columns, arenas.iter().map(row)))
}

/// `None`: not read.
fn loaders(account: &Account) -> Option<String> {
    let groups = account.loaders.as_ref().filter(|groups| !groups.is_empty())?;
    let row = |group: &LoaderGroup| {
        vec![
            Cell::Text(group.title()),
            Cell::Count(Some(group.loaders)),
            Cell::Bytes(group.metaspace_bytes),
            Cell::Bytes(group.metaspace_committed_bytes),
            Cell::Bytes(group.metaspace_resident_bytes),
            Cell::Count(group.classes),
            Cell::Count(group.hidden_classes),
            Cell::Bytes(group.malloc_bytes),
            Cell::Bytes(group.code_bytes),
        ]
    };
    let rows: Vec<Vec<Cell>> = groups.iter().take(ROWS_MAX).map(row).collect();
    let columns = [
        "CLASS LOADER",
        ">LOADERS",
        ">METASPACE",
        ">COMMITTED",
        ">RESIDENT",
        ">CLASSES",
        ">HIDDEN",
        ">MALLOC",
        ">CODE",
    ];
    Some(table("loaders", "Class loaders", &columns, &rows, groups.len().saturating_sub(ROWS_MAX)))
}

/// `None`: they were not read.
pub fn holders(account: &Account) -> Option<String> {
    let holders = account.holders.as_ref()?;
    let total = account.held_bytes();
    let row = |held: &Held| {
        let cells = vec![
            Cell::Code(held.holder.clone()),
            Cell::Bytes(Some(held.bytes)),
            Cell::Share(held.bytes, total),
            Cell::Count(Some(held.blocks)),
            Cell::Text(held.how_in_words()),
            Cell::Code(held.of_what().unwrap_or_default().to_string()),
        ];
        (held.bytes, cells)
    };
    let columns = ["HOLDER", ">BYTES", ">%", ">BLOCKS", "HOW", "C++ TYPE OR LIBRARY"];
    let caption = "Blocks of malloc in use, in memory or not, and mappings in memory";
    let table = largest("holders", caption, &columns, holders.iter().map(row));
    Some(format!("<p class=\"dim\">{HOLDERS_NOTE}</p>\n{table}"))
}

const HOLDERS_NOTE: &str =
    "A block belongs to the Java field that leads to it, else to its C++ type, a library or a thread.";

fn threads(account: &Account) -> String {
    let total = account.totals.resident_bytes;
    let rows = account.stacks().into_iter().map(|(thread, stack)| {
        let first = [
            Cell::Text(thread.name.clone()),
            Cell::Text(thread.kind.name().to_string()),
            Cell::Count(u64::try_from(thread.tid).ok()),
        ];
        (stack.resident_bytes, first.into_iter().chain(figures(stack, total)).collect())
    });
    largest("threads", "Threads' stacks", &columns(["THREAD", "KIND", ">TID"]), rows)
}

fn libraries(account: &Account) -> String {
    let total = account.totals.resident_bytes;
    let rows = account.libraries.iter().map(|library| {
        let figures = figures(&library.amounts, total);
        let cells = [Cell::Code(library.path.clone())].into_iter().chain(figures).collect();
        (library.amounts.resident_bytes, cells)
    });
    largest("libraries", "Libraries and files", &columns(["LIBRARY OR FILE"]), rows)
}

fn mappings(moment: &Moment) -> String {
    let total = moment.account.totals.resident_bytes;
    let is_swap_known = moment.account.totals.swapped_bytes.is_some();
    let rows = moment.map.spans.iter().map(|span| {
        let mapping = &moment.snapshot.os.mappings[span.mapping];
        let owners: BTreeSet<String> = span.shares.iter().map(|share| owner(moment, share.owner)).collect();
        let owners: Vec<String> = owners.into_iter().collect();
        let owners = match &owners[..] {
            [first, _, rest @ ..] => format!("{first} and {} more", rest.len() + 1),
            one => one.concat(),
        };
        let sum = span.figures();
        let first = [
            Cell::Whole(span.range.to_string()),
            Cell::Whole(mapping.rights.text()),
            Cell::Text(owners),
            Cell::Code(mapping.path.clone()),
        ];
        let sum = Amounts::of(sum, None, is_swap_known);
        (sum.resident_bytes, first.into_iter().chain(figures(&sum, total)).collect())
    });
    let first = ["ADDRESSES", "RIGHTS", "OWNER", "FILE"];
    largest("mappings", "Ranges of the address space", &columns(first), rows)
}

fn owner(moment: &Moment, index: usize) -> String {
    let owner = &moment.map.owners[index];
    match owner.instance {
        Instance::Thread(tid) => format!("{} ({tid})", owner.part),
        _ => owner.part.clone(),
    }
}
