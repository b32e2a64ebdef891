//! `map --by loader`: what class loaders hold of the metaspace, of malloc and of the code cache.

use crate::jvm::LoaderGroup;
use crate::map::Account;
use crate::map::model::LoaderTotals;
use crate::show::table::Table;
use crate::show::units::{counted, human, or_dash, paragraph};
use std::io::{self, Write};

const ROWS_SHOWN_MAX: usize = 60;
const LOADER_COLUMNS_MIN: usize = 24;

pub fn by_loader(out: &mut dyn Write, account: &Account) -> io::Result<()> {
    let (Some(loaders), Some(totals)) = (&account.loaders, &account.loader_totals) else {
        return writeln!(out, "the class loaders are not known");
    };
    let titles =
        ["CLASS LOADER", ">LOADERS", ">METASPACE", ">COMMITTED", ">CLASSES", ">HIDDEN", ">MALLOC", ">CODE"];
    let mut table = Table::new(titles).without_room(&[5, 3, 7, 6, 1, 4]).shortened(0, LOADER_COLUMNS_MIN);
    loaders.iter().take(ROWS_SHOWN_MAX).for_each(|row| table.row(cells(row)));
    if loaders.len() > ROWS_SHOWN_MAX {
        table.row([format!(
            "and {} (--json lists them)",
            counted(loaders.len() - ROWS_SHOWN_MAX, "more group")
        )]);
    }
    table.total(sums(totals));
    table.write(out)?;
    paragraph(out, "", "", &remainder(totals))
}

fn cells(row: &LoaderGroup) -> [String; 8] {
    [
        row.title(),
        row.loaders.to_string(),
        or_dash(row.metaspace_bytes.map(human)),
        or_dash(row.metaspace_committed_bytes.map(human)),
        or_dash(row.classes),
        row.hidden_classes.filter(|classes| *classes > 0).map(|it| it.to_string()).unwrap_or_default(),
        or_dash(row.malloc_bytes.map(human)),
        or_dash(row.code_bytes.map(human)),
    ]
}

fn sums(totals: &LoaderTotals) -> [String; 8] {
    [
        "total".to_string(),
        totals.loaders.to_string(),
        or_dash(totals.metaspace_bytes.map(human)),
        or_dash(totals.metaspace_committed_bytes.map(human)),
        or_dash(totals.classes),
        totals.hidden_classes.filter(|classes| *classes > 0).map(|it| it.to_string()).unwrap_or_default(),
        or_dash(totals.malloc_bytes.map(human)),
        or_dash(totals.code_bytes.map(human)),
    ]
}

/// "class metadata: 8.1 MiB resident in chunks of class loaders, 120 KiB not attributed"
fn remainder(totals: &LoaderTotals) -> String {
    let resident = or_dash(totals.metaspace_resident_bytes.map(human));
    let rest = or_dash(totals.not_attributed_bytes.map(human));
    format!("class metadata: {resident} resident in chunks of class loaders, {rest} in none")
}
