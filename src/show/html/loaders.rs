//! The table of class loaders of a page.

use super::table::{Cell, name, number, table};
use crate::jvm::LoaderGroup;
use crate::map::Account;

/// Rows of the table: the first have the most metaspace.
const ROWS_MAX: usize = 3_000;

/// `None`: not read.
pub fn loaders(account: &Account) -> Option<String> {
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
        name("CLASS LOADER"),
        number("LOADERS"),
        number("METASPACE"),
        number("COMMITTED"),
        number("RESIDENT"),
        number("CLASSES"),
        number("HIDDEN"),
        number("MALLOC"),
        number("CODE"),
    ];
    Some(table("loaders", "Class loaders", &columns, &rows, groups.len().saturating_sub(ROWS_MAX)))
}
