//! `marusa container`: the ledger of a cgroup or of the host. Each item with its sum, and below it its owners.

use super::json::{Head, Subject};
use super::text::gap_rows;
use super::units::{counted, human, human_amount, indented, percent, prose};
use crate::ledger::{Item, Ledger, Row};
use crate::show::paint;
use crate::show::table::Table;
use schemars::JsonSchema;
use serde::Serialize;
use std::io::{self, Write};

const NAME_COLUMNS_MIN: usize = 40;
/// Areas of a JVM that are shown below it.
const AREAS_SHOWN_MAX: usize = 6;
const SOCKETS_SHOWN_MAX: usize = 5;

/// `marusa container --json`.
#[derive(JsonSchema, Serialize)]
pub struct ContainerDocument<'a> {
    #[serde(flatten)]
    head: Head,
    /// The target; `None`: the cgroup was named, or the host.
    process: Option<Subject<'a>>,
    #[serde(flatten)]
    ledger: &'a Ledger,
}

impl<'a> ContainerDocument<'a> {
    pub fn of(ledger: &'a Ledger, process: Option<Subject<'a>>) -> ContainerDocument<'a> {
        ContainerDocument { head: Head::now("marusa/container/1"), process, ledger }
    }
}

pub fn text(out: &mut dyn Write, ledger: &Ledger) -> io::Result<()> {
    head(out, ledger)?;
    let mut table = Table::new(["ITEM", ">BYTES", ">SHARE", "", ">IN ALL"])
        .without_room(&[3, 4, 2])
        .shortened(0, NAME_COLUMNS_MIN);
    let items = ledger.rows.chunk_by(|a, b| a.item == b.item);
    let shown = items.filter(|rows| rows.iter().any(|row| row.bytes != 0 || row.item == Item::Remainder));
    shown.for_each(|rows| item(&mut table, rows, ledger.total_bytes));
    table.write(out)?;
    if ledger.rows.iter().any(|row| row.name.is_some() && in_all(row).is_some()) {
        let text = "\nIN ALL is more than BYTES where another cgroup was charged: the first cgroup that touches a page is charged";
        prose(out, text)?;
    }
    for row in &ledger.outside {
        let bytes = human_amount(row.bytes);
        prose(out, &format!("\noutside of the figure: {bytes} {} ({})", row.item.title(), row.how))?;
    }
    sockets(out, ledger)?;
    let table = Table::new(["RECLAIM ORDER", ">BYTES", "HOW"]).shortened(2, NAME_COLUMNS_MIN);
    let reclaim = ledger.reclaim.iter().map(|row| [row.what.clone(), human(row.bytes), row.how.clone()]);
    table.rows(reclaim).write_below(out)?;
    gap_rows(out, &ledger.gaps)
}

fn sockets(out: &mut dyn Write, ledger: &Ledger) -> io::Result<()> {
    if ledger.sockets.is_empty() {
        return Ok(());
    }
    let mut table = Table::new(["DATA IN QUEUES OF SOCKETS", "PEER", ">TO SEND", ">RECEIVED"])
        .shortened(0, NAME_COLUMNS_MIN);
    for socket in ledger.sockets.iter().take(SOCKETS_SHOWN_MAX) {
        let who = format!("{} (pid {})", socket.command, socket.pid);
        table.row([who, socket.peer.clone(), human(socket.to_send_bytes), human(socket.received_bytes)]);
    }
    table.write_below(out)
}

fn head(out: &mut dyn Write, ledger: &Ledger) -> io::Result<()> {
    let used = human(ledger.total_bytes);
    let Some(cgroup) = &ledger.cgroup else {
        indented(out, &format!("host: {used}, {}", counted(ledger.processes, "process")), 0)?;
        return writeln!(out);
    };
    indented(out, &format!("cgroup {cgroup}: {used} used, {}", counted(ledger.processes, "process")), 0)?;
    if let Some(bytes) = ledger.working_set_bytes {
        let text = format!("working set {} (as kubelet counts it: used less inactive_file)", human(bytes));
        indented(out, &text, 0)?;
    }
    match &ledger.limit {
        Some(limit) => {
            let of = if limit.cgroup == *cgroup { String::new() } else { format!(" of {}", limit.cgroup) };
            let (all, left) = (human(limit.limit_bytes), human(limit.left_bytes));
            indented(out, &format!("limit {all}{of}, {left} left before used memory must be reclaimed"), 0)?;
        }
        None => writeln!(out, "no limit")?,
    }
    let events: Vec<String> = ledger.events.iter().map(|(name, times)| format!("{name} {times}")).collect();
    if !events.is_empty() {
        indented(out, &format!("events: {}", events.join(", ")), 0)?;
    }
    writeln!(out)
}

/// The sum of an item, and below it its rows, where they have names.
fn item(table: &mut Table, rows: &[Row], total: u64) {
    let Some(first) = rows.first() else { return };
    let sum: i64 = rows.iter().map(|row| row.bytes).sum();
    let bar = if paint::has_bars() { paint::bar(sum.max(0).unsigned_abs(), total) } else { String::new() };
    table.row([first.item.title(), &human_amount(sum), &share(sum, total), &bar, ""]);
    for row in rows.iter().filter(|row| row.name.is_some()) {
        let name = row.name.as_deref().unwrap_or_default();
        let name = row.pid.map_or(name.to_string(), |pid| format!("{name} (pid {pid})"));
        let seen = in_all(row).map(human).unwrap_or_default();
        table.row([&format!("  {name}"), &human_amount(row.bytes), &share(row.bytes, total), "", &seen]);
        let parts = row.parts.iter().take(AREAS_SHOWN_MAX);
        parts.for_each(|part| table.row([&format!("    {}", part.name), &human(part.bytes)]));
    }
}

/// Shown where it is more by a twentieth: the kernel's counters of a process are not exact.
fn in_all(row: &Row) -> Option<u64> {
    let bytes = row.bytes.unsigned_abs();
    row.seen_bytes.filter(|seen| *seen > bytes.saturating_add(bytes / 20))
}

fn share(bytes: i64, total: u64) -> String {
    let text = percent(bytes.unsigned_abs(), total);
    if bytes < 0 { format!("-{text}") } else { text }
}
