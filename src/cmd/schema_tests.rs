//! The schemas as their types make them, against the files of `docs/schema`; `MARUSA_BLESS=1` writes those.

use super::schemas;
use crate::experiment::bench::{direct_buffers, fork, gc, reflection, thp, throughput, touch, trim};
use crate::map::heap::HeapObjects;
use crate::pages::Plan;
use crate::show::advise::AdviceDocument;
use crate::show::audit::AuditDocument;
use crate::show::bench::account::BenchAccountDocument;
use crate::show::bench::rounds::Document;
use crate::show::compare::json::CompareDocument;
use crate::show::container::ContainerDocument;
use crate::show::diff::json::DiffDocument;
use crate::show::doctor::{DoctorDocument, RulesDocument};
use crate::show::json::{FreezeDocument, MapDocument};
use crate::show::leaks::LeakDocument;
use crate::show::list::ListDocument;
use crate::show::look::TopDocument;
use crate::show::pages::apply::ApplyDocument;
use crate::show::pages::collapse::CollapseDocument;
use crate::show::pages::prove::ProveDocument;
use crate::show::pages::undo::UndoDocument;
use crate::show::pages::verify::VerifyDocument;
use crate::show::record::RecordedDocument;
use crate::show::serve::{FindingsDocument, HistoryDocument, JvmsDocument};
use crate::show::stalls::StallsDocument;
use crate::show::tlb::{TlbDocument, UncountedDocument};
use crate::show::trim::TrimDocument;
use crate::show::why::WhyDocument;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde::Serialize;
use serde_json::Value;
use std::path::Path;

/// By the middle of "marusa/map/2".
macro_rules! documents {
    ($($name:literal: $document:ty,)*) => {
        const ALL: &[(&str, fn() -> Schema)] = &[$(($name, of::<$document>)),*];
    };
}

documents! {
    "advice": AdviceDocument,
    "audit": AuditDocument<Value>,
    "bench-account": BenchAccountDocument,
    "bench-direct-buffers": Document<direct_buffers::Settings>,
    "bench-fork": Document<fork::Settings>,
    "bench-gc": Document<gc::Settings>,
    "bench-reflection": Document<reflection::Settings>,
    "bench-thp": Document<thp::Settings>,
    "bench-throughput": Document<throughput::Settings>,
    "bench-touch": Document<touch::Settings>,
    "bench-trim": Document<trim::Settings>,
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

/// `tlb --json` where something could be counted, and where nothing could.
#[derive(JsonSchema, Serialize)]
#[serde(untagged)]
#[expect(dead_code, reason = "its schema is all that it is for")]
enum AnyTlb<'a> {
    Counted(Box<TlbDocument<'a>>),
    Uncounted(Box<UncountedDocument<'a>>),
}

/// As it is written, which may have keys that are not needed to read it.
fn of<T: JsonSchema>() -> Schema {
    SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>()
}

#[test]
fn the_schemas_of_the_documents_are_current() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/schema");
    let files = std::fs::read_dir(&directory).into_iter().flatten().flatten();
    assert!(files.count() <= ALL.len(), "no schema of a document that there is not");
    for (name, schema) in ALL {
        let path = directory.join(format!("{name}.json"));
        let now = serde_json::to_string_pretty(&schema()).expect("JSON") + "\n";
        if std::env::var_os("MARUSA_BLESS").is_some() {
            std::fs::write(&path, &now).expect("written");
        }
        let written = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(written == now, "{} is stale: MARUSA_BLESS=1 writes it", path.display());
    }
}

#[test]
fn each_document_has_its_name_and_its_text_in_the_program() {
    assert_eq!(schemas::names(), ALL.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    assert!(
        schemas::text("map").is_some_and(|text| text.contains("\"MapDocument\""))
            && schemas::text("maps").is_none()
    );
}
