//! `map --by buffer`: buffers outside the Java heap, by who holds them. Bytes are capacities, in memory or not.

use crate::jvm::{BufferKind, BufferPool, BufferRow};
use crate::map::Account;
use crate::show::table::Table;
use crate::show::units::{counted, human, human_amount, indented, or_dash, shorten_start};
use std::io::{self, Write};

const ROWS_SHOWN_MAX: usize = 60;
const HOLDER_COLUMNS_MIN: usize = 30;
const FILE_COLUMNS_MAX: usize = 30;

pub fn by_buffer(out: &mut dyn Write, account: &Account) -> io::Result<()> {
    let Some(buffers) = &account.buffers else {
        return indented(out, "the buffers outside the Java heap are not known", 0);
    };
    let titles = ["KIND", "HOLDER", ">BYTES", ">COUNT", ">RESIDENT", ">FREE", ">DEAD", "SESSION OR FILE"];
    let mut table = Table::new(titles).without_room(&[7, 4, 5, 6, 3, 0]).shortened(1, HOLDER_COLUMNS_MIN);
    for row in buffers.iter().take(ROWS_SHOWN_MAX) {
        table.row([
            row.kind.words().to_string(),
            row.holder.clone(),
            human(row.bytes),
            row.count.to_string(),
            or_dash(row.resident_bytes.map(human)),
            if is_pool(row) { or_dash(row.free_bytes.map(human)) } else { String::new() },
            row.live_bytes.map_or(String::new(), |live| dead(row.bytes.saturating_sub(live))),
            detail(row),
        ]);
    }
    table.write(out)?;
    super::holders::rest(out, buffers.iter().skip(ROWS_SHOWN_MAX).map(|row| row.bytes))?;
    if let Some(netty) = &account.netty {
        super::netty::pools(out, netty)?;
    }
    totals(out, account)
}

/// What the last marking of the collector found dead.
fn dead(bytes: u64) -> String {
    if bytes == 0 { String::new() } else { human(bytes) }
}

fn is_pool(row: &BufferRow) -> bool {
    matches!(row.kind, BufferKind::NettyPool | BufferKind::NettyAdaptive)
}

fn detail(row: &BufferRow) -> String {
    let session = row.session.map(|session| session.word().to_string());
    let file = || row.file.as_deref().map(|file| shorten_start(file, FILE_COLUMNS_MAX));
    session.or_else(file).unwrap_or_default()
}

fn totals(out: &mut dyn Write, account: &Account) -> io::Result<()> {
    let Some(totals) = &account.buffer_totals else { return Ok(()) };
    let pool =
        |pool: BufferPool| format!("{} in {}", human(pool.capacity_bytes), counted(pool.count, "buffer"));
    let against = |jdk: Option<BufferPool>| match jdk {
        Some(jdk) => format!("the JDK counts {}", pool(jdk)),
        None => "the JDK's counters are not known".to_string(),
    };
    let mut table = Table::new(["", "FOUND", "COUNTED"]).without_room(&[2]);
    for (name, found, jdk) in [
        ("direct", totals.pools.direct_found, totals.pools.direct),
        ("mapped", totals.pools.mapped_found, totals.pools.mapped),
    ] {
        table.row([name.to_string(), pool(found), against(jdk)]);
    }
    table.write_below(out)?;
    if let Some(bytes) = totals.not_found_bytes {
        indented(out, &format!("not found of the JDK's direct memory: {}", human_amount(bytes)), 0)?;
    }
    let text = format!(
        "area direct_buffers: {} resident; of the buffers above: {}",
        human(totals.area_resident_bytes),
        or_dash(totals.resident_bytes.map(human))
    );
    indented(out, &text, 0)
}
