//! Schema marusa/compare/1.

use super::{Design, Result, sentence};
use crate::base::Gap;
use crate::experiment::compare_result::{Against, ArmCount, Cell, Row};
use crate::experiment::stats::Scale;
use crate::experiment::trial_record::ResidentAreas;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

pub fn dry_run(design: &Design) -> Value {
    let mut json = design_json(design);
    json["dry_run"] = true.into();
    json["first_blocks"] = design.first_blocks.clone().into();
    json
}

fn design_json(design: &Design) -> Value {
    let arms = design.arms.iter().map(|arm| {
        json!({
            "arm": arm.name,
            "text": arm.text,
            "command": arm.command,
            "placed": arm.placed,
            "jvm": Some(&arm.jvm).filter(|jvm| !jvm.is_empty()),
            "pages": arm.mode,
            "host_changes": arm.steps.iter().map(|step| &step.what).collect::<Vec<_>>(),
        })
    });
    json!({
        "schema": "marusa/compare/1",
        "dry_run": false,
        "made_at": design.head.made_at,
        "command": design.head.command,
        "folder": design.head.folder,
        "host": design.head.host,
        "design": {
            "blocks_max": design.blocks_max,
            "until_margin_percent": design.until_margin_percent,
            "worth_percent": design.worth_percent,
            "time_limit_seconds": design.time_limit_seconds,
            "pages": design.head.pages,
            "seed": design.head.seed,
            "resumed_runs": design.resumed,
        },
        "arms": arms.collect::<Vec<_>>(),
    })
}

pub fn result(result: &Result) -> Value {
    let comparison = &result.comparison;
    let mut json = design_json(&result.design);
    let arms = json["arms"].as_array_mut().map(|arms| arms.iter_mut()).into_iter().flatten();
    for (arm, count) in arms.zip(&comparison.arms) {
        if let (Some(arm), Value::Object(more)) = (arm.as_object_mut(), count_json(count)) {
            arm.extend(more);
        }
    }
    let about = comparison.main_row();
    let results = json!({
        "about": about.map(|row| &row.figure.key),
        "confidence_percent": comparison.confidence_percent,
        "blocks": comparison.blocks,
        "warm_up_blocks": comparison.warm_up_blocks,
        "verdicts": about.map(|row| verdicts(result, row)).unwrap_or_default(),
        "figures": comparison.rows.iter().map(|row| row_json(result, row)).collect::<Vec<_>>(),
        "ended_early": result.early,
        "given_up": result.given_up.iter().map(|(arm, why)| json!({"arm": arm, "why": why})).collect::<Vec<_>>(),
        "saved": result.saved,
        "runs": result.trials,
        "gaps": gaps(result),
    });
    if let (Some(json), Value::Object(results)) = (json.as_object_mut(), results) {
        json.extend(results);
    }
    json
}

fn count_json(count: &ArmCount) -> Value {
    let left_out: Vec<Value> =
        count.left_out.iter().map(|(why, runs)| json!({"why": why, "runs": runs})).collect();
    json!({
        "counted_runs": count.counted,
        "warm_up_runs": count.warm_up,
        "left_out": left_out,
        "heap_pages": count.heap_pages,
        "account_end": count.account_end.as_ref().map(account),
        "account_peak": count.account_peak.as_ref().map(account),
    })
}

/// Means over the runs that count.
fn account(account: &ResidentAreas) -> Value {
    let areas: Map<String, Value> =
        account.areas.iter().map(|one| (one.area.name().to_string(), one.resident_bytes.into())).collect();
    json!({"at_ms": account.at_ms, "resident_bytes": account.resident_bytes, "areas_resident_bytes": areas})
}

fn verdicts(result: &Result, row: &Row) -> Vec<Value> {
    let comparison = &result.comparison;
    let base = comparison.arms.first().map_or("", |arm| arm.name.as_str());
    let one = |(arm, cell): (&ArmCount, &Cell)| {
        let against = cell.against.as_ref();
        let text = against.map(|one| sentence(&row.figure, base, one, comparison.worth_percent));
        json!({
            "arm": arm.name,
            "against": base,
            "verdict": against.map(|one| one.verdict),
            "text": text,
        })
    };
    comparison.arms.iter().zip(&row.cells).skip(1).map(one).collect()
}

fn row_json(result: &Result, row: &Row) -> Value {
    let cell = |(arm, cell): (&ArmCount, &Cell)| {
        json!({
            "arm": arm.name,
            "runs": cell.trials,
            "sample": cell.sample,
            "difference": cell.against.as_ref().map(against),
        })
    };
    json!({
        "figure": row.figure.key,
        "name": row.figure.name.trim(),
        "unit": row.figure.unit,
        "lower_is_better": row.figure.lower_is_better,
        "arms": result.comparison.arms.iter().zip(&row.cells).map(cell).collect::<Vec<_>>(),
    })
}

fn against(one: &Against) -> Value {
    let interval = one.claim.interval;
    let ends = match one.scale {
        Scale::Percent => json!({
            "percent": interval.estimate, "low_percent": interval.low, "high_percent": interval.high,
        }),
        Scale::Unit => {
            json!({"of_unit": interval.estimate, "low_of_unit": interval.low, "high_of_unit": interval.high})
        }
    };
    let mut json = json!({
        "verdict": one.verdict,
        "blocks": one.blocks,
        "confidence_percent": (1.0 - one.doubt) * 100.0,
        "method": one.claim.method,
        "p": one.claim.p,
        "effect": one.effect,
        "effect_word": one.effect.word(),
        "visible_percent": one.visible_percent,
        "runs_needed": one.needed,
    });
    if let (Some(json), Value::Object(ends)) = (json.as_object_mut(), ends) {
        json.extend(ends);
    }
    json
}

/// Each once, with the number of runs that have it.
fn gaps(result: &Result) -> Vec<Value> {
    let mut counts: BTreeMap<String, (&Gap, usize)> = BTreeMap::new();
    for gap in result.trials.iter().flat_map(|trial| &trial.gaps) {
        counts.entry(gap.to_string()).or_insert((gap, 0)).1 += 1;
    }
    let one = |(gap, runs): (&Gap, usize)| json!({"what": gap.what, "why": gap.why, "hint": gap.hint, "runs": runs});
    counts.into_values().map(one).collect()
}
