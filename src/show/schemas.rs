//! JSON Schemas of the documents that `--json` prints, made of their types (draft 2020-12). `docs/schema` has them as files.

use super::advise::AdviceDocument;
use super::audit::AuditDocument;
use super::bench::account::BenchAccountDocument;
use super::bench::direct_buffers::BenchDirectBuffersDocument;
use super::bench::fork::BenchForkDocument;
use super::bench::gc::BenchGcDocument;
use super::bench::reflection::BenchReflectionDocument;
use super::bench::thp::BenchThpDocument;
use super::bench::throughput::BenchThroughputDocument;
use super::bench::touch::BenchTouchDocument;
use super::bench::trim::BenchTrimDocument;
use super::compare::json::CompareDocument;
use super::container::ContainerDocument;
use super::diff::json::DiffDocument;
use super::doctor::{DoctorDocument, RulesDocument};
use super::json::{FreezeDocument, MapDocument};
use super::leaks::LeakDocument;
use super::list::ListDocument;
use super::look::TopDocument;
use super::pages::apply::ApplyDocument;
use super::pages::collapse::CollapseDocument;
use super::pages::prove::ProveDocument;
use super::pages::undo::UndoDocument;
use super::pages::verify::VerifyDocument;
use super::record::RecordedDocument;
use super::serve::{FindingsDocument, HistoryDocument, JvmsDocument};
use super::stalls::StallsDocument;
use super::tlb::{TlbDocument, UncountedDocument};
use super::trim::TrimDocument;
use super::why::WhyDocument;
use crate::map::heap::HeapObjects;
use crate::pages::Plan;
use flate2::read::DeflateDecoder;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde::Serialize;
use serde_json::Value;
use std::io::Read;

/// "map", and what makes its schema.
pub type Named = (&'static str, fn() -> Schema);

macro_rules! documents {
    ($($name:literal: $document:ty,)*) => {
        /// By the middle of "marusa/map/2". The program has the texts alone, which take less space; a test has both and compares
        /// them. The text of a new document may be empty until that test has written it.
        pub const ALL: &[Named] = &[$(($name, of::<$document>)),*];
        pub const NAMES: &[&str] = &[$($name),*];
    };
}

documents! {
    "advice": AdviceDocument,
    "audit": AuditDocument<Value>,
    "bench-account": BenchAccountDocument,
    "bench-direct-buffers": BenchDirectBuffersDocument,
    "bench-fork": BenchForkDocument,
    "bench-gc": BenchGcDocument,
    "bench-reflection": BenchReflectionDocument,
    "bench-thp": BenchThpDocument,
    "bench-throughput": BenchThroughputDocument,
    "bench-touch": BenchTouchDocument,
    "bench-trim": BenchTrimDocument,
    "compare": CompareDocument,
    "container": ContainerDocument,
    "diff": DiffDocument,
    "doctor": DoctorDocument,
    "doctor-rules": RulesDocument,
    "freeze": FreezeDocument,
    "heap": HeapObjects,
    "leak": LeakDocument,
    "list": ListDocument,
    "map": MapDocument,
    "pages-apply": ApplyDocument,
    "pages-collapse": CollapseDocument,
    "pages-plan": Plan,
    "pages-prove": ProveDocument,
    "pages-split": CollapseDocument,
    "pages-undo": UndoDocument,
    "pages-verify": VerifyDocument,
    "recorded": RecordedDocument,
    "serve-findings": FindingsDocument,
    "serve-history": HistoryDocument,
    "serve-jvms": JvmsDocument,
    "stalls": StallsDocument,
    "tlb": AnyTlb,
    "top": TopDocument,
    "trim": TrimDocument,
    "why": WhyDocument,
}

/// The texts of docs/schema, put together and packed by build.rs: a twelfth of their size.
const PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/schemas.z"));

/// The text of a document's schema, as it is printed.
pub fn text(name: &str) -> Option<String> {
    let mut texts = String::new();
    DeflateDecoder::new(PACKED).read_to_string(&mut texts).ok()?;
    let (_, rest) = texts.split_once(&format!("\0{name}\0"))?;
    Some(rest.split('\0').next().unwrap_or(rest).to_string())
}

/// `tlb --json` where something could be counted, and where nothing could.
#[derive(JsonSchema, Serialize)]
#[serde(untagged)]
pub enum AnyTlb<'a> {
    Counted(Box<TlbDocument<'a>>),
    Uncounted(Box<UncountedDocument<'a>>),
}

/// As it is written, which may have keys that are not needed to read it.
fn of<T: JsonSchema>() -> Schema {
    SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>()
}
