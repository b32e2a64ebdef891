//! `map --by holder`: who holds malloc's blocks. Bytes are those of blocks in use, in memory or not.

use crate::base::Bytes;
use crate::map::Account;
use crate::show::table::Table;
use crate::show::units::{counted, human, indented, percent, shorten};
use std::io::{self, Write};

const ROWS_SHOWN_MAX: usize = 60;
const HOLDER_COLUMNS_MIN: usize = 36;
const TYPE_COLUMNS_MAX: usize = 32;

pub fn by_holder(out: &mut dyn Write, account: &Account) -> io::Result<()> {
    let Some(holders) = &account.holders else {
        return indented(out, "the holders of malloc's blocks are not known", 0);
    };
    let all = account.held_bytes();
    let titles = ["HOLDER", ">BYTES", ">%", ">BLOCKS", "HOW", "C++ TYPE OR LIBRARY"];
    let mut table = Table::new(titles).without_room(&[2, 3, 5, 4]).shortened(0, HOLDER_COLUMNS_MIN);
    for held in holders.iter().take(ROWS_SHOWN_MAX) {
        let cells = [human(held.bytes), percent(held.bytes, all), held.blocks.to_string()];
        let [bytes, share, blocks] = cells;
        let what = shorten(held.of_what().unwrap_or_default(), TYPE_COLUMNS_MAX);
        table.row([held.holder.clone(), bytes, share, blocks, held.how_in_words(), what]);
    }
    table.write(out)?;
    rest(out, holders.iter().skip(ROWS_SHOWN_MAX).map(|held| held.bytes))
}

/// The holders that are not in the table.
pub fn rest(out: &mut dyn Write, bytes: impl ExactSizeIterator<Item = Bytes>) -> io::Result<()> {
    if bytes.len() == 0 {
        return Ok(());
    }
    let (rest, bytes) = (counted(bytes.len(), "more holder"), bytes.fold(0, Bytes::saturating_add));
    indented(out, &format!("and {rest} of {} (--json lists them)", human(bytes)), 0)
}
