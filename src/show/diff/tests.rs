use super::*;
use crate::map::diff::diff;
use crate::map::sums::{Sum, Sums};
use crate::show::width::within;

const MIB: u64 = 1 << 20;

fn sums(freed: u64, metaspace: u64) -> Sums {
    let of = |resident| Sum { resident, committed: resident, ..Sum::default() };
    let arena = Sum { number: 7, resident: freed, freed: Some(freed), in_use: Some(0), ..Sum::default() };
    Sums {
        areas: [(Area::MallocFreed, of(freed)), (Area::ClassMetadata, of(metaspace))].into(),
        parts: [
            ((Area::MallocFreed, "unsorted\u{1b}[2J".to_string()), of(freed)),
            ((Area::ClassMetadata, "metaspace".to_string()), of(metaspace)),
        ]
        .into(),
        arenas: [(0x7f00_0000_0030, arena)].into(),
        ..Sums::default()
    }
}

fn shown(by: By) -> String {
    let mut out = Vec::new();
    show(&mut out, by).expect("memory");
    String::from_utf8(out).expect("text")
}

fn show(out: &mut dyn Write, by: By) -> io::Result<()> {
    let before =
        Taken { from: "a.marusa".to_string(), pid: Some(7), account_age_ms: 1500, ..Taken::default() };
    let now = Taken {
        from: "now".to_string(),
        pid: Some(7),
        command: Some("Main".to_string()),
        ..Taken::default()
    };
    text(out, &before, &now, &diff(&sums(20 * MIB, 8 * MIB), &sums(400 * MIB, 40 * MIB)), by)
}

#[test]
fn more_is_red_and_less_is_green() {
    assert_eq!(
        [Some(1), Some(-1), Some(0), None].map(grown),
        [Style::Red, Style::Green, Style::Plain, Style::Plain]
    );
    let seen = crate::show::paint::seen(|out| show(out, By::Area));
    assert!(seen.contains("\u{1b}[0;31m+380.0 MiB\u{1b}[0m"), "{seen:?}");
}

#[test]
fn the_answer_in_one_sentence() {
    let text = shown(By::Area);
    let answer = "Of +412.0 MiB: 380.0 MiB freed memory held in malloc's arena 7, 32.0 MiB class metadata (metaspace).";
    assert!(text.replace('\n', " ").contains(answer), "{text}");
    assert!(text.contains("then 1.5 s old"), "{text}");
    assert!(!text.contains('\u{1b}'), "names are shown, not obeyed");
}

#[test]
fn every_table_fits_its_width() {
    for columns in [40, 60, 80, 100] {
        for by in [By::Area, By::Part, By::Arena, By::Library, By::Thread] {
            let text = within(columns, || shown(by));
            assert!(text.lines().all(|line| line.chars().count() <= columns), "{columns}: {text}");
        }
    }
}

#[test]
fn nothing_less_and_the_other_way() {
    let same = diff(&sums(MIB, MIB), &sums(MIB, MIB));
    assert_eq!(sentence(&same.causes), "Nothing grew and nothing shrank.");
    let less = diff(&sums(400 * MIB, 40 * MIB), &sums(20 * MIB, 100 * MIB));
    assert_eq!(
        sentence(&less.causes),
        "Of -320.0 MiB: 380.0 MiB freed memory held in malloc's arena 7; against it 60.0 MiB more class metadata (metaspace)."
    );
}

#[test]
fn the_json_has_all_tables_and_says_what_is_not_known() {
    let found = diff(&sums(20 * MIB, 8 * MIB), &sums(400 * MIB, 40 * MIB));
    let (before, now) = (Taken::default(), Taken::default());
    let value = serde_json::to_value(json::DiffDocument::of(&before, &now, &found)).expect("JSON");
    assert_eq!(value["schema"], "marusa/diff/2");
    assert_eq!(value["causes"][0]["arena"], 7);
    assert_eq!(value["arenas"][0]["freed_grown_bytes"], 380 * MIB);
    assert!(value["kernel_resident_grown_bytes"].is_null());
    assert!(value["gaps"].as_array().is_some_and(|gaps| gaps.len() >= 2), "{value}");
}

#[test]
fn who_holds_more_is_a_table_of_its_own() {
    let sums = |bytes: u64| {
        let held = Sum { in_use: Some(bytes), blocks: Some(bytes / 256), ..Sum::default() };
        let name = "org.rocksdb.ReadOptions.nativeHandle_\u{1b}[2J".to_string();
        Sums { named: [((Named::Holder, name), held)].into(), ..sums(0, 8 * MIB) }
    };
    let taken = Taken { holders_at: Some("2026-01-01T00:00:00Z".to_string()), ..Taken::default() };
    let shown = |before: &Sums, now: &Sums| {
        let mut out = Vec::new();
        text(&mut out, &taken, &taken, &diff(before, now), By::Named(Named::Holder)).expect("memory");
        String::from_utf8(out).expect("text")
    };
    let grown = shown(&sums(MIB), &sums(311 * MIB));
    assert!(
        ["org.rocksdb.ReadOptions.nativeHandle_", "+310.0 MiB", "+1269760", "holders as read at 2026-01-01"]
            .iter()
            .all(|part| grown.contains(part)),
        "{grown}"
    );
    assert!(!grown.contains('\u{1b}') && grown.lines().all(|line| line.chars().count() <= 100), "{grown}");
    assert!(shown(&sums(MIB), &sums(MIB)).contains("nothing of this kind changed"));
    assert!(shown(&sums(MIB), &Sums::default()).contains("one of the two has no holders"));
}
