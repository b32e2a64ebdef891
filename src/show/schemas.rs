//! JSON Schemas of the documents that `--json` prints, made of their types (draft 2020-12). `docs/schema` has them as files.

use super::audit::AuditDocument;
use super::bench::account::BenchAccountDocument;
use super::bench::direct_buffers::BenchDirectBuffersDocument;
use super::bench::fork::BenchForkDocument;
use super::bench::gc::BenchGcDocument;
use super::bench::reflection::BenchReflectionDocument;
use super::bench::throughput::BenchThroughputDocument;
use super::bench::touch::BenchTouchDocument;
use super::bench::trim::BenchTrimDocument;
use super::calibrate::CalibrationDocument;
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
use super::predict::PriceDocument;
use super::record::RecordedDocument;
use super::stalls::StallsDocument;
use super::tlb::TlbDocument;
use super::trim::TrimDocument;
use super::why::WhyDocument;
use crate::map::heap::HeapObjects;
use crate::pages::Plan;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde::Serialize;
use serde_json::Value;

/// "map", and what makes its schema.
pub type Named = (&'static str, fn() -> Schema);

/// By the middle of "marusa/map/2".
pub const ALL: [Named; 33] = [
    ("audit", of::<AuditDocument<Value>>),
    ("bench-account", of::<BenchAccountDocument>),
    ("bench-direct-buffers", of::<BenchDirectBuffersDocument>),
    ("bench-fork", of::<BenchForkDocument>),
    ("bench-gc", of::<BenchGcDocument>),
    ("bench-reflection", of::<BenchReflectionDocument>),
    ("bench-throughput", of::<BenchThroughputDocument>),
    ("bench-touch", of::<BenchTouchDocument>),
    ("bench-trim", of::<BenchTrimDocument>),
    ("calibration", of::<CalibrationDocument>),
    ("compare", of::<CompareDocument>),
    ("container", of::<ContainerDocument>),
    ("diff", of::<DiffDocument>),
    ("doctor", of::<DoctorDocument>),
    ("doctor-rules", of::<RulesDocument>),
    ("freeze", of::<FreezeDocument>),
    ("heap", of::<HeapObjects>),
    ("leak", of::<LeakDocument>),
    ("list", of::<ListDocument>),
    ("map", of::<MapDocument>),
    ("pages-apply", of::<ApplyDocument>),
    ("pages-collapse", of::<CollapseDocument>),
    ("pages-plan", of::<Plan>),
    ("pages-prove", of::<ProveDocument>),
    ("pages-split", of::<CollapseDocument>),
    ("pages-undo", of::<UndoDocument>),
    ("pages-verify", of::<VerifyDocument>),
    ("recorded", of::<RecordedDocument>),
    ("stalls", of::<StallsDocument>),
    ("tlb", of::<AnyTlb>),
    ("top", of::<TopDocument>),
    ("trim", of::<TrimDocument>),
    ("why", of::<WhyDocument>),
];

/// `tlb --json` where something could be counted, and where nothing could.
#[derive(JsonSchema, Serialize)]
#[serde(untagged)]
pub enum AnyTlb<'a> {
    Counted(Box<TlbDocument<'a>>),
    Price(Box<PriceDocument<'a>>),
}

/// As it is written, which may have keys that are not needed to read it.
fn of<T: JsonSchema>() -> Schema {
    SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>()
}
