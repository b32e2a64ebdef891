use super::*;
use crate::base::{Gap, Why};
use crate::jvm::ThreadKind;
use crate::map::Area;
use crate::map::model::{
    Account, Amounts, AreaAccount, ArenaAccount, MallocAccount, PartAccount, ThreadAccount, Totals,
};

const MIB: u64 = 1 << 20;

fn amounts(mib: u64) -> Amounts {
    Amounts { resident_bytes: mib * MIB, by_page_size: [(4096, mib * MIB)].into(), ..Amounts::default() }
}

fn area(area: Area, parts: &[(&str, u64)]) -> AreaAccount {
    let part = |(name, mib): &(&str, u64)| PartAccount {
        amounts: amounts(*mib),
        part: name.to_string(),
        how: Vec::new(),
    };
    AreaAccount {
        amounts: amounts(parts.iter().map(|(_, mib)| mib).sum()),
        area,
        paper_area: None,
        mappings: None,
        parts: parts.iter().map(part).collect(),
    }
}

fn thread(tid: i32, name: &str) -> ThreadAccount {
    let stack = Some(amounts(tid as u64));
    ThreadAccount { tid, name: name.to_string(), kind: ThreadKind::Java, stack, compiling: None }
}

/// A JVM with a heap of `heap_mib` and 10 MiB of class metadata.
pub fn look(pid: i32, at: f64, heap_mib: u64) -> Look {
    let arena = ArenaAccount { resident_bytes: 3 * MIB, ..ArenaAccount::default() };
    let account = Account {
        totals: Totals { resident_bytes: (heap_mib + 10) * MIB, ..Totals::default() },
        areas: vec![
            area(Area::JavaHeap, &[("eden", heap_mib - 5), ("old", 5)]),
            area(Area::ClassMetadata, &[("class space", 10)]),
        ],
        malloc: Some(MallocAccount { arenas: vec![arena], ..MallocAccount::default() }),
        threads: vec![thread(1, "main"), thread(2, "http\u{1b}[2J-nio")],
        ..Account::default()
    };
    Look {
        pid,
        start_ticks: pid as u64,
        name: format!("com.example.Main{pid}"),
        runtime: "21.0.8, g1".to_string(),
        at,
        took_ms: 12.0,
        kernel_resident_bytes: Some((heap_mib + 10) * MIB),
        account: Ok(account),
        memory_limit: None,
        is_jdk_tool: false,
        holders: None,
    }
}

pub fn model(view: View, looks: impl IntoIterator<Item = Look>) -> Model {
    let mut model = Model::new(view);
    let mut pids = Vec::new();
    for look in looks {
        pids.push(look.pid);
        model.learn(News::Looked(Box::new(look)));
    }
    model.learn(News::Round { pids, took_ms: 20.0 });
    model
}

fn names(model: &Model) -> Vec<String> {
    model.rows().into_iter().map(|row| row.name).collect()
}

#[test]
fn the_biggest_is_first_and_sorting_goes_around() {
    let mut model = model(View::All, [look(1, 0.0, 100), look(2, 0.0, 300), look(3, 0.0, 200)]);
    let pids = |model: &Model| model.rows().iter().filter_map(|row| row.pid).collect::<Vec<_>>();
    assert_eq!(pids(&model), [2, 3, 1]);
    model.press(Key::Char('S'));
    assert_eq!(pids(&model), [1, 3, 2]);
    (0..3).for_each(|_| {
        model.press(Key::Char('s'));
    });
    model.press(Key::Char('S'));
    assert_eq!((model.sort, pids(&model)), (Sort::Name, vec![1, 2, 3]));
    model.press(Key::Char('s'));
    assert_eq!(model.sort, Sort::Resident);
}

#[test]
fn rates_are_of_the_last_two_looks_and_growth_is_since_the_mark() {
    let mut model = model(View::All, [look(1, 0.0, 100)]);
    assert_eq!(model.rows()[0].rate, None, "one sample has no rate");
    model.press(Key::Char('m'));
    model.learn(News::Looked(Box::new(look(1, 2.0, 104))));
    model.learn(News::Looked(Box::new(look(1, 4.0, 110))));
    let row = &model.rows()[0];
    assert_eq!((row.rate, row.since_mark), (Some(3.0 * MIB as f64), Some(10 * MIB as i64)));
    model.press(Key::Char('M'));
    assert_eq!(model.rows()[0].since_mark, None);
}

#[test]
fn into_one_jvm_its_parts_its_tabs_and_back_to_the_same_row() {
    let mut model = model(View::All, [look(1, 0.0, 100), look(2, 0.0, 300)]);
    model.press(Key::Down);
    model.press(Key::Enter);
    assert_eq!(model.view, View::One(1));
    assert_eq!(names(&model), ["Java heap", "class metadata"]);
    model.press(Key::Enter);
    assert_eq!(names(&model), ["Java heap", "eden", "old", "class metadata"]);
    model.press(Key::Left);
    assert_eq!(names(&model).len(), 2);
    model.press(Key::Char('2'));
    assert_eq!(names(&model), ["4 KiB pages", "Java heap", "class metadata"]);
    model.press(Key::Char('1'));
    model.press(Key::BackTab);
    model.press(Key::BackTab);
    assert_eq!((model.tab, names(&model).len()), (Tab::Threads, 2));
    model.press(Key::Char('3'));
    assert_eq!(names(&model), ["main arena"]);
    model.press(Key::Esc);
    assert_eq!((model.view, model.selected), (View::All, 1), "where it came from");
    assert_eq!(model.press(Key::Esc), Some(Action::Quit));
}

#[test]
fn a_filter_finds_parts_that_are_folded_and_keys_are_letters_while_it_is_typed() {
    let mut model = model(View::One(1), [look(1, 0.0, 100)]);
    for key in [Key::Char('/'), Key::Char('E'), Key::Char('D'), Key::Char('q')] {
        assert_eq!(model.press(key), None, "q is a letter here");
    }
    model.press(Key::Backspace);
    assert_eq!(names(&model), ["Java heap", "eden"], "and the area that it is in");
    model.press(Key::Enter);
    assert_eq!(model.press(Key::Esc), None, "the filter is cleared first");
    assert_eq!(names(&model).len(), 2);
}

#[test]
fn jvms_that_end_leave_and_new_ones_show_from_their_start() {
    let mut model = model(View::All, [look(1, 0.0, 100), look(2, 0.0, 300)]);
    model.press(Key::Char('m'));
    model.press(Key::Enter);
    model.learn(News::Looked(Box::new(look(3, 1.0, 50))));
    model.learn(News::Round { pids: vec![1, 3], took_ms: 1.0 });
    assert_eq!(model.view, View::All, "the one that was shown has ended");
    assert!(model.message.as_deref().is_some_and(|message| message.contains("pid 2")));
    let row = model.rows().into_iter().find(|row| row.pid == Some(3)).expect("it is there");
    assert_eq!(row.since_mark, Some(0));
    // The same pid, another process: nothing is compared.
    let again = Look { start_ticks: 99, ..look(1, 2.0, 400) };
    model.learn(News::Looked(Box::new(again)));
    assert_eq!(model.jvms[&1].before, None);
}

#[test]
fn what_may_not_be_read_is_a_row_with_the_kernels_sum() {
    let denied = Look { account: Err(Gap::new("pagemap", Why::Denied)), ..look(9, 0.0, 100) };
    let model = model(View::All, [denied]);
    let row = &model.rows()[0];
    assert_eq!(row.resident_bytes, Some(110 * MIB));
    assert!(row.note.as_deref().is_some_and(|note| note.contains("denied")));
}

#[test]
fn no_key_leaves_the_rows() {
    let mut model = model(View::All, (1..=30).map(|pid| look(pid, 0.0, 100)));
    let keys =
        [Key::End, Key::Down, Key::PageDown, Key::Home, Key::Up, Key::PageUp, Key::End, Key::Char('k')];
    for key in keys {
        model.press(key);
        assert!(
            model.selected < 30 && model.top <= model.selected && model.selected < model.top + model.page
        );
    }
    model.learn(News::Round { pids: vec![], took_ms: 1.0 });
    assert_eq!((model.selected, model.top), (0, 0));
    model.press(Key::Enter);
    assert_eq!(model.view, View::All, "there is nothing to go into");
}
