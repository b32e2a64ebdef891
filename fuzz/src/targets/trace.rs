//! Pages of the kernel's ring buffer, and the texts that say what is in them.

use marusa::os::trace::decode::{Decoder, Source};
use marusa::os::trace::format::{Field, Format, PageForm};
use marusa::os::trace::{names, ring, tracefs};
use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::OnceLock;

/// As Linux 6.18 has them: "@compaction/mm_compaction_begin", then the format.
fn decoder() -> &'static Decoder {
    static DECODER: OnceLock<Decoder> = OnceLock::new();
    DECODER.get_or_init(|| {
        let text = include_str!("../../../tests/data/trace/formats-6.18.txt");
        let parts = text.split('@').filter_map(|part| part.split_once('\n'));
        let parts: BTreeMap<&str, &str> = parts.collect();
        let format = |source: Source| Some((source, Format::parse(parts.get(source.directory().as_str())?)?));
        let formats: BTreeMap<Source, Format> = Source::all().filter_map(format).collect();
        Decoder::new(&formats).expect("a decoder").0
    })
}

pub fn run(bytes: &[u8]) {
    let Some((kind, bytes)) = bytes.split_first() else { return };
    let mut form = PageForm { commit: Field { offset: 8, bytes: 8, is_signed: true }, data: 16, bytes: 4096 };
    if kind % 2 == 1 {
        let text = String::from_utf8_lossy(bytes);
        if let Some(format) = Format::parse(&text) {
            for (name, field) in &format.fields {
                black_box((format.words(name), format.flag(name), field.number(bytes), field.text(bytes)));
            }
            for source in Source::all() {
                black_box(source.filter(&format));
                let formats = BTreeMap::from([(source, format.clone())]);
                if let Ok((decoder, _)) = Decoder::new(&formats) {
                    let _ = black_box(decoder.decode(0, 0, bytes));
                }
            }
        }
        form = PageForm::parse(&text).unwrap_or(form);
        black_box((tracefs::lost(&text), tracefs::clock_ahead_ns(&text), names::living(&text)));
    }
    let page = ring::events(bytes, &form, |at_ns, record| {
        let _ = black_box(decoder().decode(at_ns, 0, record));
    });
    black_box(page);
}
