//! JSON Schemas of the documents that `--json` prints (draft 2020-12): the files of `docs/schema`, which a test makes of the
//! documents' types (src/cmd/schema_tests.rs).

use flate2::read::DeflateDecoder;
use std::io::Read;

/// The texts of docs/schema, put together and packed by build.rs: a twelfth of their size.
const PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/schemas.z"));

/// Name and text of all, by name.
fn all() -> Vec<(String, String)> {
    let mut texts = String::new();
    let _ = DeflateDecoder::new(PACKED).read_to_string(&mut texts);
    let mut parts = texts.split('\0').skip(1).map(str::to_string);
    std::iter::from_fn(|| parts.next().zip(parts.next())).collect()
}

/// The middle of "marusa/map/2", of each document.
pub fn names() -> Vec<String> {
    all().into_iter().map(|(name, _)| name).collect()
}

/// The text of a document's schema, as it is printed.
pub fn text(name: &str) -> Option<String> {
    all().into_iter().find(|(of, _)| of == name).map(|(_, text)| text)
}
