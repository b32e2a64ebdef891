//! malloc_info(3): glibc's own figures, as XML (malloc/malloc.c, `__malloc_info`). What it says is not all meant so:
//! the sizes of chunks in bins are summed with their flag bits, the top chunk is counted as "rest", and what is in
//! threads' caches counts as in use, that is, not at all.

/// Bytes and number, as glibc prints them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    pub chunks: u64,
    pub bytes: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Info {
    pub arenas: Vec<ArenaInfo>,
    pub mmapped: Count,
    pub system_bytes: u64,
    /// The line of tests/native/heap.c: what the program holds in arenas.
    pub live: Option<Count>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArenaInfo {
    pub fast: Count,
    /// Unsorted, small and large chunks, with their flag bits, and the top without.
    pub rest: Count,
    pub unsorted: Count,
    /// Fast and small chunks, and large ones, by the classes of sizes; the sizes of small and large ones with flag bits.
    pub below_1024: Count,
    pub large: Count,
    pub system_bytes: u64,
}

impl Info {
    pub fn parse(text: &str) -> Info {
        let mut info = Info::default();
        let mut arena: Option<ArenaInfo> = None;
        for line in text.lines().map(str::trim) {
            if line.starts_with("<heap ") {
                arena = Some(ArenaInfo::default());
            } else if line == "</heap>" {
                info.arenas.extend(arena.take());
            } else if let Some(arena) = &mut arena {
                arena.add(line);
            } else if line.starts_with("<total type=\"mmap\"") {
                info.mmapped = Count { chunks: number(line, "count"), bytes: number(line, "size") };
            } else if line.starts_with("<system type=\"current\"") {
                info.system_bytes = number(line, "size");
            } else if let Some(live) = line.strip_prefix("live ") {
                let numbers: Vec<u64> =
                    live.split(' ').map(|number| number.parse().expect("a number")).collect();
                info.live = Some(Count { chunks: numbers[0], bytes: numbers[1] });
            }
        }
        assert!(text.contains("</malloc>"), "the report is whole: {text}");
        info
    }
}

impl ArenaInfo {
    fn add(&mut self, line: &str) {
        let total = || Count { chunks: number(line, "count"), bytes: number(line, "total") };
        let size = || Count { chunks: number(line, "count"), bytes: number(line, "size") };
        if line.starts_with("<size ") {
            let class = if number(line, "to") < 1024 { &mut self.below_1024 } else { &mut self.large };
            *class = Count { chunks: class.chunks + total().chunks, bytes: class.bytes + total().bytes };
        } else if line.starts_with("<unsorted ") {
            self.unsorted = total();
        } else if line.starts_with("<total type=\"fast\"") {
            self.fast = size();
        } else if line.starts_with("<total type=\"rest\"") {
            self.rest = size();
        } else if line.starts_with("<system type=\"current\"") {
            self.system_bytes = number(line, "size");
        }
    }
}

fn number(line: &str, name: &str) -> u64 {
    let (_, rest) = line.split_once(&format!(" {name}=\"")).unwrap_or_else(|| panic!("{name} in {line}"));
    let (digits, _) = rest.split_once('"').expect("a closing quote");
    digits.parse().expect("a number")
}

#[test]
fn the_report_of_glibc_is_read() {
    let text = r#"<malloc version="1">
<heap nr="0">
<sizes>
  <size from="33" to="48" total="96" count="2"/>
  <size from="2049" to="2049" total="2049" count="1"/>
  <unsorted from="497" to="497" total="497" count="1"/>
</sizes>
<total type="fast" count="2" size="96"/>
<total type="rest" count="3" size="21447149"/>
<system type="current" size="135168"/>
<system type="max" size="135168"/>
</heap>
<total type="fast" count="2" size="96"/>
<total type="rest" count="3" size="21447149"/>
<total type="mmap" count="5" size="50000"/>
<system type="current" size="135168"/>
</malloc>
live 4 4096 0"#;
    let info = Info::parse(text);
    let arena = &info.arenas[0];
    assert_eq!((info.arenas.len(), info.mmapped), (1, Count { chunks: 5, bytes: 50000 }));
    assert_eq!((arena.fast.bytes, arena.below_1024.chunks, arena.large.bytes), (96, 2, 2049));
    assert_eq!((arena.unsorted.chunks, arena.rest.chunks, arena.system_bytes), (1, 3, 135168));
    assert_eq!(info.live, Some(Count { chunks: 4, bytes: 4096 }));
}
