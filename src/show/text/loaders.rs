//! `map --by loader`: what class loaders hold of the metaspace, of malloc and of the code cache.

use super::{gap_rows, head};
use crate::jvm::LoaderGroup;
use crate::map::Account;
use crate::map::model::LoaderTotals;
use crate::show::table::Table;
use crate::show::units::{counted, human, paragraph};
use std::io::{self, Write};

const ROWS_SHOWN_MAX: usize = 60;
const LOADER_COLUMNS_MIN: usize = 24;

pub fn by_loader(out: &mut dyn Write, account: &Account) -> io::Result<()> {
    head(out, account)?;
    let (Some(loaders), Some(totals)) = (&account.loaders, &account.loader_totals) else {
        writeln!(out, "the class loaders are not known")?;
        return gap_rows(out, &account.gaps);
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
    paragraph(out, "", "", &remainder(totals))?;
    gap_rows(out, &account.gaps)
}

fn cells(row: &LoaderGroup) -> [String; 8] {
    [
        row.title(),
        row.loaders.to_string(),
        bytes(row.metaspace_bytes),
        bytes(row.metaspace_committed_bytes),
        count(row.classes),
        row.hidden_classes
            .filter(|classes| *classes > 0)
            .map_or(String::new(), |classes| classes.to_string()),
        bytes(row.malloc_bytes),
        bytes(row.code_bytes),
    ]
}

fn sums(totals: &LoaderTotals) -> [String; 8] {
    let hidden = totals.hidden_classes.filter(|classes| *classes > 0);
    [
        "total".to_string(),
        totals.loaders.to_string(),
        bytes(totals.metaspace_bytes),
        bytes(totals.metaspace_committed_bytes),
        count(totals.classes),
        hidden.map_or(String::new(), |classes| classes.to_string()),
        bytes(totals.malloc_bytes),
        bytes(totals.code_bytes),
    ]
}

/// "class metadata: 8.1 MiB resident in chunks of class loaders, 120 KiB not attributed"
fn remainder(totals: &LoaderTotals) -> String {
    let resident = bytes(totals.metaspace_resident_bytes);
    let rest = bytes(totals.not_attributed_bytes);
    format!("class metadata: {resident} resident in chunks of class loaders, {rest} in none")
}

fn bytes(bytes: Option<u64>) -> String {
    bytes.map_or("-".to_string(), human)
}

fn count(count: Option<u64>) -> String {
    count.map_or("-".to_string(), |count| count.to_string())
}
