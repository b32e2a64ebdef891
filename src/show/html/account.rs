//! The parts of a page that are of one moment in full: who it is, the treemap, the picture of pages, the tables.

use super::safe::escaped;
use super::table::{Cell, Column, name, number, table};
use super::treemap::{self, Node};
use super::{Account, Page};
use crate::map::account::{by_area, by_library, by_thread};
use crate::map::malloc;
use crate::map::{Area, Figures, Instance};
use crate::show::units::{human, percent};
use std::collections::{BTreeSet, HashMap};

/// Rows of one table: the largest. The JSON of `map` has all.
const ROWS_MAX: usize = 3_000;

/// Who, when, and the sums that everything else divides.
pub fn summary(account: &Account) -> String {
    let (process, taken) = (&account.snapshot.os.process, &account.snapshot.taken);
    let balance = &account.map.balance;
    let mut html = format!("<p class=\"command\"><code>{}</code></p>", escaped(&process.command));
    let mut facts: Vec<String> = vec![format!("pid {}", process.pid), format!("user {}", process.user)];
    facts.extend(process.container.iter().map(|container| format!("container {container}")));
    if let Ok(jvm) = &account.snapshot.jvm {
        facts.push(format!("{} {}", jvm.vm, jvm.version.as_deref().unwrap_or("version unknown")));
        facts.push(jvm.gc.as_ref().map_or("collector unknown", |gc| gc.name()).to_string());
    }
    facts.push(if taken.at.is_empty() {
        "taken at an unknown time".to_string()
    } else {
        format!("taken {}", taken.at)
    });
    html += &format!("<p class=\"dim\">{}</p>\n<dl class=\"sums\">", escaped(&facts.join(" · ")));
    let kernel = balance.kernel_resident.map_or("not known".to_string(), human);
    let tables = balance.page_tables.map_or("not known".to_string(), human);
    let unattributed = format!(
        "{} ({} %)",
        human(balance.unattributed),
        percent(balance.unattributed, balance.total.resident)
    );
    for (what, figure) in [
        ("in memory", human(balance.total.resident)),
        ("the kernel's figure", kernel),
        ("reserved", human(balance.total.reserved)),
        ("swapped", human(balance.total.swapped)),
        ("page tables", tables),
        ("unattributed", unattributed),
    ] {
        html += &format!("<div><dt>{what}</dt><dd>{}</dd></div>", escaped(&figure));
    }
    html + "</dl>\n"
}

/// Of the account, or else of the last moment of each history.
pub fn treemap(page: &Page) -> Option<String> {
    let mut areas: Vec<Node> = match &page.account {
        Some(account) => by_area(account.map)
            .iter()
            .map(|sum| {
                area(
                    sum.area,
                    sum.figures.resident,
                    sum.parts.iter().map(|part| (part.part.as_str(), part.figures.resident)),
                )
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
pub fn pages(account: &Account) -> Option<String> {
    let grid = account.grid?;
    let mut html = String::from(
        "<p class=\"needs-script\">Each cell is a block of 2 MiB; a block opens into its pages of 4 KiB. Stretches with nothing in \
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
        html += "<p class=\"dim\">There are so many stretches of pages that of most blocks only the number of pages in memory is \
                 kept, not which.</p>\n";
    }
    if !grid.is_placed {
        html += "<p class=\"dim\">This kernel tells how many pages of a mapping are in memory, not which: they stand at its \
                 start.</p>\n";
    }
    html += if grid.has_folios {
        "<p class=\"dim\">Page sizes are those of folios, what the kernel allocates as one.</p>\n"
    } else {
        "<p class=\"dim\">Page sizes are what one entry of the page table maps.</p>\n"
    };
    Some(html + "<noscript><p>The picture of pages needs scripts; the tables below do not.</p></noscript>\n")
}

pub fn tables(account: &Account) -> String {
    let mut html = parts(account);
    html += &page_sizes(account);
    html += &arenas(account).unwrap_or_default();
    html += &threads(account);
    html += &libraries(account);
    html + &mappings(account)
}

const FIGURES: [Column; 5] =
    [number("IN MEMORY"), number("%"), number("COMMITTED"), number("RESERVED"), number("SWAPPED")];

fn figures(figures: &Figures, total: u64) -> [Cell; 5] {
    [
        Cell::Bytes(Some(figures.resident)),
        Cell::Share(figures.resident, total),
        Cell::Bytes(Some(figures.committed)),
        Cell::Bytes(Some(figures.reserved)),
        Cell::Bytes(Some(figures.swapped)),
    ]
}

fn columns(first: impl IntoIterator<Item = Column>) -> Vec<Column> {
    first.into_iter().chain(FIGURES).collect()
}

/// The largest, and how many are left out.
fn largest(mut rows: Vec<(u64, Vec<Cell>)>) -> (Vec<Vec<Cell>>, usize) {
    rows.sort_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
    let left_out = rows.len().saturating_sub(ROWS_MAX);
    rows.truncate(ROWS_MAX);
    (rows.into_iter().map(|(_, cells)| cells).collect(), left_out)
}

fn parts(account: &Account) -> String {
    let total = account.map.balance.total.resident;
    let areas = by_area(account.map);
    let rows = areas.iter().flat_map(|area| area.parts.iter().map(move |part| (area, part)));
    let rows = rows.map(|(area, part)| {
        let names = [Cell::Text(area.area.title().to_string()), Cell::Text(part.part.clone())];
        let rest = [Cell::Bytes(part.in_use), Cell::Text(part.how.join(", "))];
        let cells = names.into_iter().chain(figures(&part.figures, total)).chain(rest).collect();
        (part.figures.resident, cells)
    });
    let (rows, left_out) = largest(rows.collect());
    let mut columns = columns([name("AREA"), name("PART")]);
    columns.extend([number("IN USE"), name("HOW IT IS KNOWN")]);
    table("parts", "Areas and parts", &columns, &rows, left_out)
}

fn page_sizes(account: &Account) -> String {
    const KIND: &str = "KIND OF PAGE";
    let total = account.map.balance.total.resident;
    let mut rows = Vec::new();
    for area in by_area(account.map) {
        let by_kind = area.figures.by_page_kind.iter().map(|(kind, bytes)| (kind.name(), *bytes));
        let by_size = area.figures.by_page_size.iter().map(|(size, bytes)| (human(*size), *bytes));
        let has_kinds = !area.figures.by_page_kind.is_empty();
        let sizes: Vec<(String, u64)> = if has_kinds { by_kind.collect() } else { by_size.collect() };
        for (size, bytes) in sizes.into_iter().filter(|(_, bytes)| *bytes > 0) {
            let cells = vec![
                Cell::Text(area.area.title().to_string()),
                Cell::Text(size),
                Cell::Bytes(Some(bytes)),
                Cell::Share(bytes, total),
            ];
            rows.push((bytes, cells));
        }
    }
    let (rows, left_out) = largest(rows);
    table(
        "sizes",
        "Page sizes",
        &[name("AREA"), name(KIND), number("IN MEMORY"), number("%")],
        &rows,
        left_out,
    )
}

fn arenas(account: &Account) -> Option<String> {
    let sum = malloc::sum(account.snapshot, account.map)?;
    let row = |arena: &malloc::ArenaSum| {
        let trimmable = arena.arena.figures.as_ref().ok().map(|figures| figures.trimmable_bytes);
        let title = match arena.arena.number {
            0 => "main arena".to_string(),
            number => format!("arena {number}"),
        };
        let cells = vec![
            Cell::Text(title),
            Cell::Count(arena.arena.attached_threads),
            Cell::Bytes(Some(arena.divided.whole.resident)),
            Cell::Bytes(Some(arena.divided.in_use.resident)),
            Cell::Bytes(Some(arena.divided.held_bytes())),
            Cell::Bytes(trimmable),
            Cell::Bytes(Some(arena.divided.overhead.resident)),
        ];
        (arena.divided.whole.resident, cells)
    };
    let (rows, left_out) = largest(sum.arenas.iter().map(row).collect());
    let columns = [
        name("ARENA"),
        number("THREADS"),
        number("IN MEMORY"),
        number("IN USE"),
        number("FREED"),
        number("TRIMMABLE"),
        number("OVERHEAD"),
    ];
    (!rows.is_empty()).then(|| table("arenas", "malloc's arenas", &columns, &rows, left_out))
}

fn threads(account: &Account) -> String {
    let total = account.map.balance.total.resident;
    let known = account.snapshot.jvm.iter().flat_map(|jvm| &jvm.threads);
    let names: HashMap<i32, (&str, String)> = known
        .map(|thread| (thread.tid, (thread.name.as_str(), format!("{:?}", thread.kind).to_lowercase())))
        .collect();
    let rows = by_thread(account.map).into_iter().map(|(tid, _, sum)| {
        let (thread, kind) = names.get(&tid).map_or(("?", "?"), |(name, kind)| (name, kind));
        let first = [
            Cell::Text(thread.to_string()),
            Cell::Text(kind.to_string()),
            Cell::Count(u64::try_from(tid).ok()),
        ];
        (sum.resident, first.into_iter().chain(figures(&sum, total)).collect())
    });
    let (rows, left_out) = largest(rows.collect());
    table(
        "threads",
        "Threads' stacks",
        &columns([name("THREAD"), name("KIND"), number("TID")]),
        &rows,
        left_out,
    )
}

fn libraries(account: &Account) -> String {
    let total = account.map.balance.total.resident;
    let rows = by_library(account.map).into_iter().map(|(path, _, sum)| {
        let cells = [Cell::Code(path.to_string())].into_iter().chain(figures(&sum, total)).collect();
        (sum.resident, cells)
    });
    let (rows, left_out) = largest(rows.collect());
    table("libraries", "Libraries and files", &columns([name("LIBRARY OR FILE")]), &rows, left_out)
}

fn mappings(account: &Account) -> String {
    let total = account.map.balance.total.resident;
    let rows = account.map.spans.iter().map(|span| {
        let mapping = &account.snapshot.os.mappings[span.mapping];
        let owners: BTreeSet<String> = span.shares.iter().map(|share| owner(account, share.owner)).collect();
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
        (sum.resident, first.into_iter().chain(figures(&sum, total)).collect())
    });
    let (rows, left_out) = largest(rows.collect());
    let first = [name("ADDRESSES"), name("RIGHTS"), name("OWNER"), name("FILE")];
    table("mappings", "Stretches of the address space", &columns(first), &rows, left_out)
}

fn owner(account: &Account, index: usize) -> String {
    let owner = &account.map.owners[index];
    match owner.instance {
        Instance::Thread(tid) => format!("{} ({tid})", owner.part),
        _ => owner.part.clone(),
    }
}
