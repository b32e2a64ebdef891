use crate::os::memory::Pieces;
use crate::os::status::Status;
use crate::os::target::{NoSymbols, OsView, ProcessFacts, Target};

/// A process of which only its mappings are known; all of them count as resident.
pub fn with_maps(text: &str, test: impl FnOnce(&Target)) {
    let view = OsView {
        process: ProcessFacts::default(),
        status: Status::default(),
        mappings: crate::os::maps::parse(text.as_bytes()).0,
        pages: Err(crate::base::Gap::new("pagemap", crate::base::Why::Denied)),
        tasks: Vec::new(),
        gaps: Vec::new(),
        late: None,
        page_sizes: None,
        smaps: None,
    };
    test(&Target { view: &view, memory: &Pieces::default(), symbols: &NoSymbols });
}
