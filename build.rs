//! The JSON Schemas that `marusa schema` prints go into the binary, packed.

use flate2::Compression;
use flate2::write::DeflateEncoder;
use std::env;
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;

const SCHEMAS: &str = "docs/schema";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed={SCHEMAS}");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo gives OUT_DIR"));
    fs::write(out.join("schemas.z"), schemas()).expect("a file below OUT_DIR");
}

/// What src/show/schemas.rs unpacks: name and text of each after a NUL, packed.
fn schemas() -> Vec<u8> {
    let entries = fs::read_dir(SCHEMAS).expect("docs/schema is there");
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.sort_by(|one, other| one.file_stem().cmp(&other.file_stem()));
    let mut packed = DeflateEncoder::new(Vec::new(), Compression::best());
    for file in files.iter().filter(|file| file.extension().is_some_and(|extension| extension == "json")) {
        let name = file.file_stem().and_then(|name| name.to_str()).expect("names of schemas are ASCII");
        let text = fs::read_to_string(file).expect("a file of docs/schema");
        packed.write_all(format!("\0{name}\0{text}").as_bytes()).expect("memory");
    }
    packed.finish().expect("memory")
}
