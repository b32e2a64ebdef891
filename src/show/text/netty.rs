//! `map --by buffer`: Netty's pools, below the buffers.

use crate::jvm::{ChunkSums, Netty};
use crate::show::table::Table;
use crate::show::units::{human, indented, or_dash};
use std::io::{self, Write};

const ROWS_SHOWN_MAX: usize = 40;
const NAME_COLUMNS_MIN: usize = 24;
const USES: [&str; 6] = ["empty", "to 25 %", "to 50 %", "to 75 %", "to 99 %", "full"];

pub fn pools(out: &mut dyn Write, netty: &Netty) -> io::Result<()> {
    let arenas = netty.arenas.iter().map(|row| {
        let place = or_dash(row.arena);
        let huge = if row.huge == 0 { "-".to_string() } else { human(row.huge_bytes) };
        let caches = or_dash(row.thread_caches);
        chunks(format!("{place} of allocator {}", row.allocator), &row.chunks, [huge, caches])
    });
    write(out, with_chunks("NETTY ARENA", [">HUGE", ">THREADS"]), arenas)?;
    let caches = netty.thread_caches.iter().map(|row| {
        let threads = or_dash(row.threads.as_deref());
        [threads, row.caches.to_string(), row.buffers.to_string(), or_dash(row.bytes.map(human))]
    });
    write(out, Table::new(["NETTY CACHES OF THREADS", ">CACHES", ">BUFFERS", ">BYTES"]), caches)?;
    let adaptive = netty.adaptive.iter().map(|row| {
        let kind = row.segment_bytes.map_or("other".to_string(), |bytes| format!("{bytes} B each"));
        let name = format!("{kind}, allocator {}", row.allocator);
        chunks(name, &row.chunks, [row.magazines.to_string(), String::new()])
    });
    write(out, with_chunks("NETTY ADAPTIVE", [">MAGAZINES", ""]), adaptive)
}

fn with_chunks(first: &str, last: [&str; 2]) -> Table {
    Table::new([first, ">CHUNKS", ">BYTES", ">FREE", last[0], last[1], "CHUNKS BY USE"]).without_room(&[6])
}

fn chunks(name: String, chunks: &ChunkSums, last: [String; 2]) -> [String; 7] {
    let by_use = chunks.by_use.iter().zip(USES).filter(|(count, _)| **count > 0);
    let by_use: Vec<String> = by_use.map(|(count, name)| format!("{count} {name}")).collect();
    let [one, two] = last;
    let free = or_dash(chunks.free_bytes.map(human));
    [name, chunks.count.to_string(), human(chunks.bytes), free, one, two, by_use.join(", ")]
}

fn write<const N: usize>(
    out: &mut dyn Write,
    table: Table,
    mut rows: impl ExactSizeIterator<Item = [String; N]>,
) -> io::Result<()> {
    if rows.len() == 0 {
        return Ok(());
    }
    let mut table = table.shortened(0, NAME_COLUMNS_MIN);
    rows.by_ref().take(ROWS_SHOWN_MAX).for_each(|row| table.row(row));
    table.write_below(out)?;
    match rows.len() {
        0 => Ok(()),
        rest => indented(out, &format!("and {rest} more (--json lists them)"), 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jvm::NettyThreadCaches;

    #[test]
    fn caches_of_threads_without_a_name_have_the_title() {
        let of_unnamed =
            NettyThreadCaches { caches: 5, buffers: 292, bytes: Some(1 << 20), ..Default::default() };
        let mut text = Vec::new();
        pools(&mut text, &Netty { thread_caches: vec![of_unnamed], ..Default::default() }).expect("written");
        let text = String::from_utf8(text).expect("text");
        assert!(text.contains("NETTY CACHES OF THREADS"), "{text}");
    }
}
