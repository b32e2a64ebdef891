//! `marusa trim` for programs: `marusa/trim/2`. Unknown is `null` with an entry in `gaps`, never 0.

use super::{Price, gaps, words};
use crate::base::{Bytes, Known};
use crate::map::model::{GapRow, Taken, Totals};
use crate::map::trim::{Advice, ArenaOutcome, ArenaPrediction, Held, Outcome, Prediction};
use crate::map::{Account, MemoryMap};
use crate::os::host::Host;
use crate::pages::changes::{TrimReceipt, TrimWay};
use crate::show::json::Start;
use crate::snapshot::Snapshot;
use schemars::JsonSchema;
use serde::Serialize;

const SCHEMA: &str = "marusa/trim/2";

/// `marusa trim --json`.
#[derive(JsonSchema, Serialize)]
pub struct TrimDocument {
    #[serde(flatten)]
    start: Start,
    totals: Totals,
    predicted: Option<PredictedRow>,
    pub dry_run: bool,
    pub way: Option<TrimWay>,
    /// Why not.
    pub not_done: Option<String>,
    pub receipt: Option<TrimReceipt>,
    pub outcome: Option<OutcomeRow>,
    advice: Vec<AdviceRow>,
    gaps: Vec<GapRow>,
}

/// One round of `--every`, on one line: the arenas are left out.
#[derive(JsonSchema, Serialize)]
pub struct RoundDocument<'a> {
    schema: &'static str,
    host: Host,
    taken: Taken,
    process: RoundProcess,
    predicted: Option<HeldRow>,
    receipt: Option<&'a TrimReceipt>,
    outcome: Option<OutcomeRow>,
}

#[derive(JsonSchema, Serialize)]
struct RoundProcess {
    pid: i32,
}

#[derive(JsonSchema, Serialize)]
struct HeldRow {
    #[serde(flatten)]
    held: Held,
    scattered_bytes: Bytes,
}

#[derive(JsonSchema, Serialize)]
struct PredictedRow {
    #[serde(flatten)]
    held: HeldRow,
    allocator: String,
    answer_buffer_bytes: Bytes,
    arenas_not_read: usize,
    arenas: Vec<ArenaRow>,
}

#[derive(JsonSchema, Serialize)]
struct ArenaRow {
    #[serde(flatten)]
    held: Option<HeldRow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gap: Option<GapRow>,
    number: usize,
    at: String,
    attached_threads: Option<u64>,
    system_bytes: Bytes,
}

#[derive(JsonSchema, Serialize)]
pub struct OutcomeRow {
    #[serde(flatten)]
    outcome: Outcome,
    #[serde(flatten)]
    price: Price,
    returned_bytes: i64,
    error_share: Option<f64>,
    arenas: Vec<ArenaOutcome>,
}

#[derive(JsonSchema, Serialize)]
struct AdviceRow {
    option: Option<String>,
    why: String,
}

impl TrimDocument {
    /// What is known before.
    pub fn of(
        snapshot: &Snapshot,
        map: &MemoryMap,
        prediction: &Known<Prediction>,
        advice: &[Advice],
    ) -> TrimDocument {
        let (start, totals) = Start::of(SCHEMA, Account::of(snapshot, map));
        let advice = advice.iter().map(words).map(|(option, why)| AdviceRow { option, why });
        TrimDocument {
            start,
            totals,
            predicted: prediction.as_ref().ok().map(PredictedRow::from),
            dry_run: false,
            way: None,
            not_done: None,
            receipt: None,
            outcome: None,
            advice: advice.collect(),
            gaps: gaps(snapshot, prediction).iter().map(GapRow::from).collect(),
        }
    }
}

impl<'a> RoundDocument<'a> {
    pub fn of(
        snapshot: &Snapshot,
        prediction: &Known<Prediction>,
        receipt: Option<&'a TrimReceipt>,
        done: Option<(&Outcome, &Price)>,
    ) -> RoundDocument<'a> {
        RoundDocument {
            schema: SCHEMA,
            host: Host::here(),
            taken: Taken::of(snapshot),
            process: RoundProcess { pid: snapshot.os.process.pid },
            predicted: prediction.as_ref().ok().map(|prediction| HeldRow::from(&prediction.total)),
            receipt,
            outcome: done.map(|(outcome, price)| OutcomeRow::of(outcome, price)),
        }
    }
}

impl From<&Prediction> for PredictedRow {
    fn from(prediction: &Prediction) -> PredictedRow {
        PredictedRow {
            held: HeldRow::from(&prediction.total),
            allocator: prediction.allocator.clone(),
            answer_buffer_bytes: prediction.answer_buffer_bytes,
            arenas_not_read: prediction.unread,
            arenas: prediction.arenas.iter().map(ArenaRow::from).collect(),
        }
    }
}

impl From<&ArenaPrediction> for ArenaRow {
    fn from(arena: &ArenaPrediction) -> ArenaRow {
        ArenaRow {
            held: arena.held.as_ref().ok().map(HeldRow::from),
            gap: arena.held.as_ref().err().map(GapRow::from),
            number: arena.number,
            at: arena.at.to_string(),
            attached_threads: arena.attached_threads,
            system_bytes: arena.system_bytes,
        }
    }
}

impl From<&Held> for HeldRow {
    fn from(held: &Held) -> HeldRow {
        HeldRow { held: *held, scattered_bytes: held.scattered_bytes() }
    }
}

impl OutcomeRow {
    pub fn of(outcome: &Outcome, price: &Price) -> OutcomeRow {
        OutcomeRow {
            outcome: outcome.clone(),
            price: *price,
            returned_bytes: outcome.returned_bytes(),
            error_share: outcome.error_share(),
            arenas: outcome.arenas.clone(),
        }
    }
}
