//! Rows that are alike, as one: a pool of threads, the small files of one directory. A JVM has hundreds of either, and a table
//! of them all hides the few that matter.

use super::{Account, Amounts, LibraryAccount, ThreadAccount};
use crate::base::Bytes;
use crate::base::alike::group_of;
use crate::jvm::types::ThreadKind;
use std::collections::BTreeMap;

/// Files of at least one percent of the process are never grouped.
const SMALL_PART: Bytes = 100;
const FILES_MIN: usize = 3;

/// Threads whose names differ only in numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct StackGroup {
    pub kind: ThreadKind,
    /// The whole name of a single thread.
    pub name: String,
    /// The lowest first.
    pub tids: Vec<i32>,
    pub amounts: Amounts,
}

/// One file, or the small files of a directory.
#[derive(Clone, Debug, PartialEq)]
pub struct FileGroup {
    /// A path, or a directory with `/*` behind it.
    pub name: String,
    pub files: usize,
    pub amounts: Amounts,
    /// `None`: not known of all of them.
    pub malloc_bytes: Option<Bytes>,
}

impl Account {
    /// The stacks by groups of threads, the largest first.
    pub fn stack_groups(&self) -> Vec<StackGroup> {
        let mut groups: BTreeMap<(&str, String), Vec<_>> = BTreeMap::new();
        for (thread, stack) in self.stacks() {
            groups.entry((thread.kind.name(), group_of(&thread.name))).or_default().push((thread, stack));
        }
        let group = |((_, alike), members): ((&str, String), Vec<(&ThreadAccount, &Amounts)>)| {
            let (first, _) = members[0];
            let mut tids: Vec<i32> = members.iter().map(|(thread, _)| thread.tid).collect();
            tids.sort_unstable();
            StackGroup {
                kind: first.kind,
                name: if members.len() == 1 { first.name.clone() } else { alike },
                tids,
                amounts: Amounts::sum(members.into_iter().map(|(_, stack)| stack)),
            }
        };
        let mut groups: Vec<StackGroup> = groups.into_iter().map(group).collect();
        groups.sort_by_key(|group| std::cmp::Reverse(group.amounts.resident_bytes));
        groups
    }

    /// Libraries and files, the small ones by directory, the largest first.
    pub fn file_groups(&self) -> Vec<FileGroup> {
        let mut groups: BTreeMap<&str, Vec<&LibraryAccount>> = BTreeMap::new();
        let large = self.totals.resident_bytes / SMALL_PART;
        let all =
            |it: &LibraryAccount| it.amounts.resident_bytes.saturating_add(it.malloc_bytes.unwrap_or(0));
        let directory = |it: &LibraryAccount| it.path.rfind('/').map_or(it.path.len(), |at| at + 1);
        for library in &self.libraries {
            let name_ends = if all(library) < large { directory(library) } else { library.path.len() };
            groups.entry(&library.path[..name_ends]).or_default().push(library);
        }
        let mut found: Vec<FileGroup> = Vec::new();
        for (directory, files) in groups {
            match files.len() {
                ..FILES_MIN => found.extend(files.iter().map(|file| FileGroup::of(&[file], &file.path))),
                _ => found.push(FileGroup::of(&files, &format!("{directory}*"))),
            }
        }
        let all = |it: &FileGroup| it.amounts.resident_bytes.saturating_add(it.malloc_bytes.unwrap_or(0));
        found.sort_by_key(|it| std::cmp::Reverse(all(it)));
        found
    }
}

impl FileGroup {
    fn of(files: &[&LibraryAccount], name: &str) -> FileGroup {
        FileGroup {
            name: name.to_string(),
            files: files.len(),
            amounts: Amounts::sum(files.iter().map(|file| &file.amounts)),
            malloc_bytes: files.iter().map(|file| file.malloc_bytes).sum(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resident(bytes: Bytes) -> Amounts {
        Amounts { resident_bytes: bytes, ..Amounts::default() }
    }

    #[test]
    fn pools_of_threads_are_one_row_each() {
        let thread = |tid, name: &str, kind, bytes| ThreadAccount {
            tid,
            name: name.to_string(),
            kind,
            stack: Some(resident(bytes)),
            compiling: None,
        };
        let (java, gc) = (ThreadKind::Java, ThreadKind::Gc);
        let threads = vec![
            thread(9, "pool-1-thread-2", java, 10),
            thread(8, "pool-1-thread-1", java, 30),
            thread(7, "http-9", java, 35),
            thread(6, "pool-1-thread-3", gc, 1),
        ];
        let account = Account { threads, ..Account::default() };
        let groups = account.stack_groups();
        let shown: Vec<_> = groups
            .iter()
            .map(|group| (group.name.as_str(), group.tids.as_slice(), group.amounts.resident_bytes))
            .collect();
        assert_eq!(
            shown,
            [
                ("pool-#-thread-#", &[8, 9][..], 40),
                ("http-9", &[7][..], 35),
                ("pool-1-thread-3", &[6][..], 1)
            ]
        );
    }

    #[test]
    fn small_files_of_a_directory_are_one_row_and_large_ones_are_not() {
        let file = |path: &str, bytes, malloc_bytes| LibraryAccount {
            amounts: resident(bytes),
            path: path.to_string(),
            malloc_bytes,
        };
        let libraries = vec![
            file("/app/lib/large.jar", 100, None),
            file("/app/lib/a.jar", 9, None),
            file("/app/lib/b.jar", 9, None),
            file("/app/lib/c.jar", 5, None),
            file("/jdk/lib/one.so", 3, Some(7)),
            file("/jdk/lib/two.so", 1, None),
            file("[vdso]", 2, None),
        ];
        let mut account = Account { libraries, ..Account::default() };
        account.totals.resident_bytes = 1000;
        let groups = account.file_groups();
        let shown: Vec<_> = groups
            .iter()
            .map(|group| (group.name.as_str(), group.files, group.amounts.resident_bytes, group.malloc_bytes))
            .collect();
        let expected = [
            ("/app/lib/large.jar", 1, 100, None),
            ("/app/lib/*", 3, 23, None),
            ("/jdk/lib/one.so", 1, 3, Some(7)),
            ("[vdso]", 1, 2, None),
            ("/jdk/lib/two.so", 1, 1, None),
        ];
        assert_eq!(shown, expected);
    }
}
