//! Malloc's part of the audit: to the byte, as both sides count blocks.

use crate::base::Bytes;
use crate::map::audit::malloc::{ArenaRow, MallocAudit, MmappedRow, TagRow, difference};
use crate::map::model::TagAccount;
use crate::show::table::Table;
use crate::show::units::{counted, hanging, or_dash};
use schemars::JsonSchema;
use serde::Serialize;
use std::io::{self, Write};

const NAME_COLUMNS_MIN: usize = 12;

pub fn text(out: &mut dyn Write, audit: &MallocAudit) -> io::Result<()> {
    if !audit.tags.is_empty() {
        let titles =
            ["BLOCKS BY NMT'S TAG", ">BLOCKS", ">OURS", ">ITS COUNTERS", ">APART", ">ITS REPORT", ">APART"];
        let mut table = Table::new(titles).without_room(&[5, 6, 1, 3]).shortened(0, NAME_COLUMNS_MIN);
        audit.tags.iter().chain([&audit.total()]).for_each(|row| table.row(tag(row)));
        table.write_below(out)?;
        let text = "bytes. Counters: NMT's own, in the JVM's memory. Report: VM.native_memory, asked before; it counts the memory \
                    that the JVM used for its answer (Internal). Arena Chunk is with what the arenas use.";
        hanging(out, text, 0)?;
    }
    if !audit.arenas.is_empty() {
        let titles = ["ARENAS", ">FROM SYSTEM", ">MALLOC_INFO", ">FREE", ">MALLOC_INFO", ">APART"];
        let mut table = Table::new(titles).without_room(&[2, 1]).shortened(0, NAME_COLUMNS_MIN);
        audit.arenas.iter().for_each(|row| table.row(arena(row)));
        table.write_below(out)?;
        let text = "malloc_info was written while the arena of the asked thread held the answer before it";
        hanging(out, text, 0)?;
    }
    if let Some(row) = &audit.mmapped {
        let [ours, theirs] = [(row.ours_chunks, row.ours_bytes), (row.said_chunks, row.said_bytes)]
            .map(|(chunks, bytes)| format!("{} of {bytes} bytes", counted(chunks, "chunk")));
        hanging(out, &format!("mapped one by one: {ours}; malloc_info: {theirs}"), 0)?;
    }
    Ok(())
}

fn tag(row: &TagRow) -> [String; 7] {
    [
        row.tag.clone(),
        or_dash(row.ours_blocks),
        or_dash(row.ours_bytes),
        or_dash(row.counted_bytes),
        apart(row.ours_bytes, row.counted_bytes),
        or_dash(row.said_bytes),
        apart(row.ours_bytes, row.said_bytes),
    ]
}

fn arena(row: &ArenaRow) -> [String; 6] {
    [
        if row.number == 0 { "main arena".to_string() } else { format!("arena {}", row.number) },
        or_dash(row.ours_system_bytes),
        or_dash(row.said_system_bytes),
        or_dash(row.ours_free_bytes),
        or_dash(row.said_free_bytes),
        apart(row.ours_free_bytes, row.said_free_bytes),
    ]
}

/// "+16", "-3", "0"; "" where either is not known.
fn apart(ours: Option<Bytes>, theirs: Option<Bytes>) -> String {
    match difference(ours, theirs) {
        Some(0) => "0".to_string(),
        Some(apart) => format!("{apart:+}"),
        None => String::new(),
    }
}

#[derive(JsonSchema, Serialize)]
pub struct MallocRow<'a> {
    tags: Vec<TagAccount>,
    total: TagAccount,
    arenas: &'a [ArenaRow],
    mmapped: Option<MmappedRow>,
}

impl<'a> From<&'a MallocAudit> for MallocRow<'a> {
    fn from(audit: &'a MallocAudit) -> MallocRow<'a> {
        MallocRow {
            tags: audit.tags.iter().map(TagAccount::from).collect(),
            total: TagAccount::from(&audit.total()),
            arenas: &audit.arenas,
            mmapped: audit.mmapped,
        }
    }
}
