//! `marusa trim` as text: what would come back, how, what came back, what it cost, and what would help next time.

mod json;

pub use json::{OutcomeRow, RoundDocument, TrimDocument};

use super::text::{gaps as show_gaps, head};
use crate::base::{Bytes, Gap, Known};
use crate::map::trim::{Advice, ArenaPrediction, Held, Outcome, Prediction};
use crate::map::{Account, MemoryMap};
use crate::show::table::Table;
use crate::show::units::{counted, hanging, human, human_signed, or_dash, paragraph, pasted, prose};
use crate::snapshot::Snapshot;
use std::io::{self, Write};

/// Arenas that are shown one by one, the ones that hold the most.
const ARENAS_SHOWN_MAX: usize = 16;

/// What a call cost the target.
#[derive(Clone, Copy, Debug, Default, schemars::JsonSchema, serde::Serialize)]
pub struct Price {
    pub call_ms: f64,
    /// Page faults without input or output, while it was called and in the seconds after.
    #[serde(rename = "page_faults_during")]
    pub faults_during: Option<u64>,
    #[serde(rename = "page_faults_after")]
    pub faults_after: Option<u64>,
    pub watched_seconds: u64,
    /// The kernel's sum when the watch ended.
    pub resident_later_bytes: Option<Bytes>,
}

/// What the command prints before it changes anything.
pub fn before(
    out: &mut dyn Write,
    snapshot: &Snapshot,
    map: &MemoryMap,
    prediction: &Known<Prediction>,
) -> io::Result<()> {
    head(out, &Account::of(snapshot, map))?;
    if let Ok(prediction) = prediction {
        prediction_text(out, prediction)?;
    }
    show_gaps(out, &gaps(snapshot, prediction))
}

/// What is not known of malloc.
fn gaps(snapshot: &Snapshot, prediction: &Known<Prediction>) -> Vec<Gap> {
    let mut gaps: Vec<Gap> = prediction.as_ref().err().into_iter().cloned().collect();
    gaps.extend(snapshot.alloc.iter().flat_map(|alloc| alloc.gaps.iter().cloned()));
    gaps
}

fn prediction_text(out: &mut dyn Write, prediction: &Prediction) -> io::Result<()> {
    let mut table = Table::new([
        "ARENA",
        ">THREADS",
        ">FROM SYSTEM",
        ">CHUNKS USED",
        ">FREE",
        ">FREE RESIDENT",
        ">COMES BACK",
        ">TOP STAYS",
    ])
    .without_room(&[1, 2, 3, 4, 7]);
    let mut arenas: Vec<&ArenaPrediction> = prediction.arenas.iter().collect();
    arenas.sort_by_key(|arena| {
        std::cmp::Reverse(arena.held.as_ref().map_or(0, |held| held.free_resident_bytes))
    });
    for arena in arenas.iter().take(ARENAS_SHOWN_MAX) {
        let threads = or_dash(arena.attached_threads);
        let name = if arena.number == 0 { "main".to_string() } else { arena.number.to_string() };
        arena_row(&mut table, &name, &threads, arena.system_bytes, &arena.held);
    }
    if let Some(more) = arenas.len().checked_sub(ARENAS_SHOWN_MAX + 1) {
        table.note("", &format!("and {} more (--json lists all)", more + 1));
    }
    let system = arenas.iter().fold(0, |sum: Bytes, arena| sum.saturating_add(arena.system_bytes));
    arena_row(&mut table, "all", "", system, &Ok(prediction.total));
    table.write(out)?;
    if prediction.unread > 0 {
        let arenas = counted(prediction.unread, "arena");
        let text = format!("{arenas} could not be read: what they give back comes on top");
        hanging(out, &text, 0)?;
    }
    let text =
        "CHUNKS USED and FREE: in memory or not, with headers, without chunks that malloc mapped one by one";
    hanging(out, text, 0)?;
    kept_text(out, &prediction.total)?;
    if prediction.answer_buffer_bytes > 0 {
        let buffer = human(prediction.answer_buffer_bytes);
        let text = format!("{buffer} of it the JVM will hold for its own answer: not counted as coming back");
        hanging(out, &text, 0)?;
    }
    Ok(())
}

fn arena_row(table: &mut Table, name: &str, threads: &str, system: Bytes, held: &Known<Held>) {
    let figures: [fn(&Held) -> Bytes; 5] = [
        |held| held.in_use_bytes,
        |held| held.free_bytes,
        |held| held.free_resident_bytes,
        |held| held.trimmable_bytes,
        |held| held.top_kept_bytes,
    ];
    let of = |figure: fn(&Held) -> Bytes| held.as_ref().map_or("-".to_string(), |held| human(figure(held)));
    let start = [name.to_string(), threads.to_string(), human(system)];
    table.row(start.into_iter().chain(figures.map(of)));
}

fn kept_text(out: &mut dyn Write, total: &Held) -> io::Result<()> {
    let text = format!(
        "\nof {} free and resident, {} come back; {} in tops of threads' arenas stay, and {} on pages that blocks in use \
         share, or in lists that malloc_trim does not touch",
        human(total.free_resident_bytes),
        human(total.trimmable_bytes),
        human(total.top_kept_bytes),
        human(total.scattered_bytes())
    );
    prose(out, &text)
}

/// What came back, and its price.
pub fn after(out: &mut dyn Write, outcome: &Outcome, price: &Price) -> io::Result<()> {
    let text = format!(
        "\nresident {} -> {}: {} came back{}",
        human(outcome.resident_before_bytes),
        human(outcome.resident_after_bytes),
        human_signed(outcome.returned_bytes()),
        against(outcome)
    );
    prose(out, &text)?;
    let mut arenas: Vec<_> = outcome.arenas.iter().filter(|arena| arena.predicted_bytes > 0).collect();
    arenas.sort_by_key(|arena| std::cmp::Reverse(arena.predicted_bytes));
    let mut table = Table::new(["", ">PREDICTED", ">CAME BACK"]).indented(2);
    for arena in arenas.iter().take(ARENAS_SHOWN_MAX) {
        let name =
            if arena.number == 0 { "main arena".to_string() } else { format!("arena {}", arena.number) };
        let (predicted, returned) = (human(arena.predicted_bytes), human_signed(arena.returned_bytes));
        table.row([name, predicted, returned]);
    }
    if arenas.len() > 1 {
        table.write(out)?;
    }
    price_text(out, outcome, price)
}

fn against(outcome: &Outcome) -> String {
    match (&outcome.predicted_bytes, outcome.error_share()) {
        (Ok(predicted), Some(share)) => {
            format!(", {:+.2} % against {} predicted", share * 100.0, human(*predicted))
        }
        (Ok(_), None) => ", where nothing was predicted".to_string(),
        (Err(_), _) => String::new(),
    }
}

fn price_text(out: &mut dyn Write, outcome: &Outcome, price: &Price) -> io::Result<()> {
    let mut text = format!(
        "price: {:.1} ms for the call, {} page faults during it",
        price.call_ms,
        or_dash(price.faults_during)
    );
    if price.watched_seconds > 0 {
        text += &format!(", {} in the {} s after", or_dash(price.faults_after), price.watched_seconds);
    }
    if let Some(later) = price.resident_later_bytes {
        let grown =
            i64::try_from(later).unwrap_or(i64::MAX).saturating_sub_unsigned(outcome.resident_after_bytes);
        text += &format!(" (resident {} then, {})", human(later), human_signed(grown));
    }
    paragraph(out, "", "", &text)
}

/// The options that would help after the next start.
pub fn advice_text(out: &mut dyn Write, advice: &[Advice]) -> io::Result<()> {
    if advice.is_empty() {
        return Ok(());
    }
    prose(out, "\nfrom now on (figures of before):")?;
    for one in advice {
        let (option, why) = words(one);
        if let Some(option) = option {
            pasted(out, "  ", &option)?;
        }
        paragraph(out, "    ", "    ", &why)?;
    }
    Ok(())
}

/// The option, and why.
fn words(advice: &Advice) -> (Option<String>, String) {
    match *advice {
        Advice::TrimInterval { trimmable_bytes, experimental } => {
            let unlock = if experimental { "-XX:+UnlockExperimentalVMOptions " } else { "" };
            let option = format!("{unlock}-XX:TrimNativeHeapInterval=5000");
            let trimmable = human(trimmable_bytes);
            (
                Some(option),
                format!("the JVM gives back by itself, every 5 s, what malloc_trim can: {trimmable} now"),
            )
        }
        Advice::TrimIntervalIsSet { trimmable_bytes, milliseconds } => {
            let trimmable = human(trimmable_bytes);
            let why = format!(
                "-XX:TrimNativeHeapInterval={milliseconds} is set: {trimmable} since the JVM last trimmed"
            );
            (None, why)
        }
        Advice::NewerJvm { trimmable_bytes } => {
            let trimmable = human(trimmable_bytes);
            let why = format!(
                "this JVM has no -XX:TrimNativeHeapInterval; 17.0.9 and later, updates of 21, and 22 on give the \
                 {trimmable} back by themselves with it"
            );
            (None, why)
        }
        Advice::FewerArenas { arenas, free_resident_bytes, largest_bytes, attached_threads, threads } => {
            let why = format!(
                "arenas of threads ({arenas}) hold {} free and resident, the largest {}, for {attached_threads} of {threads} \
                 threads; with fewer arenas, what one thread frees serves another, and threads wait at their locks more \
                 often",
                human(free_resident_bytes),
                human(largest_bytes)
            );
            (Some("MALLOC_ARENA_MAX=2".to_string()), why)
        }
        Advice::TrimThreshold { top_kept_bytes } => {
            let why = format!(
                "{} are in tops of threads' arenas, which malloc_trim leaves; with a threshold of one's own (glibc raises its \
                 own up to 64 MiB) free() gives them back, and large blocks are mapped and unmapped more often",
                human(top_kept_bytes)
            );
            (Some("MALLOC_TRIM_THRESHOLD_=131072".to_string()), why)
        }
    }
}

/// One line of `--every`.
pub fn round(
    out: &mut dyn Write,
    at: &str,
    prediction: &Known<Prediction>,
    done: Option<(&Outcome, &Price)>,
) -> io::Result<()> {
    let could = prediction.as_ref().map_or("unknown".to_string(), |one| human(one.total.trimmable_bytes));
    let done = match done {
        None => "left alone".to_string(),
        Some((outcome, price)) => format!(
            "{} did in {:.1} ms{}; resident {}",
            human_signed(outcome.returned_bytes()),
            price.call_ms,
            outcome.error_share().map_or(String::new(), |share| format!(" ({:+.2} %)", share * 100.0)),
            human(outcome.resident_after_bytes)
        ),
    };
    hanging(out, &format!("{at}  {could:>10} could come back, {done}"), 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::show::width::width;

    #[test]
    fn advice_fits_the_width_and_names_its_figures() {
        let all = [
            Advice::TrimInterval { trimmable_bytes: 64 << 20, experimental: true },
            Advice::TrimIntervalIsSet { trimmable_bytes: 4096, milliseconds: 1000 },
            Advice::NewerJvm { trimmable_bytes: 64 << 20 },
            Advice::FewerArenas {
                arenas: 14,
                free_resident_bytes: 200 << 20,
                largest_bytes: 64 << 20,
                attached_threads: 12,
                threads: 40,
            },
            Advice::TrimThreshold { top_kept_bytes: 9 << 20 },
        ];
        let mut bytes = Vec::new();
        advice_text(&mut bytes, &all).expect("written");
        let text = String::from_utf8(bytes).expect("UTF-8");
        assert!(text.lines().all(|line| line.chars().count() <= width()), "{text}");
        for word in ["UnlockExperimental", "64.0 MiB", "4 KiB", "12 of 40", "200.0 MiB", "9.0 MiB"] {
            assert!(text.replace("\n    ", " ").contains(word), "no {word} in {text}");
        }
    }

    #[test]
    fn an_outcome_without_a_prediction_says_none() {
        let gap = Gap::new("chunks of an arena", crate::base::Why::Torn);
        let outcome = Outcome {
            predicted_bytes: Err(gap),
            resident_before_bytes: 100 << 20,
            resident_after_bytes: 40 << 20,
            arenas: Vec::new(),
        };
        let mut bytes = Vec::new();
        let price = Price { call_ms: 12.34, faults_during: Some(3), ..Price::default() };
        after(&mut bytes, &outcome, &price).expect("written");
        let text = String::from_utf8(bytes).expect("UTF-8");
        assert_eq!(
            text,
            "\nresident 100.0 MiB -> 40.0 MiB: +60.0 MiB came back\n\
             price: 12.3 ms for the call, 3 page faults during it\n"
        );
        let row = serde_json::to_value(OutcomeRow::of(&outcome, &price)).expect("JSON");
        assert!(row["predicted_bytes"].is_null());
    }
}
