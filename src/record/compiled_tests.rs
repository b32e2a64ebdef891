use super::*;
use crate::record::writer::{JvmFacts, Scope, Session, Writer};
use crate::record::{Moment, figures, reader};

const MIB: u64 = 1 << 20;

fn rows(work: u64, methods: &[(&str, u64)]) -> Vec<Row> {
    let mut rows = vec![(Subject::Area(Area::JitWork), Measure::Resident, Some(work * MIB))];
    for (name, mib) in methods {
        let subject = Subject::Named(Named::Compiled, name.to_string());
        rows.push((subject.clone(), Measure::Threads, Some(1)));
        rows.push((subject, Measure::InUse, Some(mib * MIB)));
    }
    rows
}

/// As a recorder writes these accounts, each a second after the one before.
pub fn recorded(accounts: &[(u64, &[(&str, u64)])]) -> History {
    let mut writer = Writer::new(&Session::default());
    let jvm = writer.jvm(JvmFacts { pid: 7, ..JvmFacts::default() });
    let mut before = Before::default();
    for (second, (work, methods)) in accounts.iter().enumerate() {
        let at = Moment { steady_ms: second as u64 * 1000, wall_ms: second as i64 * 1000 };
        let mut rows = rows(*work, methods);
        before.choose(&mut rows);
        writer.sample(jvm, at, Scope::Account, &figures::of_account(rows, at.steady_ms, 1, 0));
    }
    reader::read(&[&writer.take()]).expect("a recording").jvms.remove(0)
}

#[test]
fn methods_are_kept_where_jit_work_jumps_and_only_there() {
    let history = recorded(&[
        (500, &[("a.First::run, level 4", 400)]),
        (507, &[("a.Below::run, level 4", 10)]),
        (523, &[("a.Small::run, level 3", 2), ("a.Large::run, level 4", 14)]),
        (100, &[("a.Less::run, level 4", 20)]),
        (200, &[("a.Large::run, level 4", 90)]),
    ]);
    let jumps = jumps(&history);
    let named: Vec<(usize, u64, Vec<&str>)> = jumps
        .iter()
        .map(|jump| {
            let methods = jump.methods.iter().map(|one| one.method.as_str()).collect();
            (jump.moment, jump.grown_bytes / MIB, methods)
        })
        .collect();
    let both = vec!["a.Large::run, level 4", "a.Small::run, level 3"];
    assert_eq!(named, [(4, 100, vec!["a.Large::run, level 4"]), (2, 16, both)]);
    assert_eq!(jumps[0].methods_in_words(), "a.Large::run, level 4 (arenas 90.0 MiB)");
    assert_eq!(history.keys().iter().filter(|key| key.subject.name().is_some()).count(), 4);
}

#[test]
fn of_many_methods_those_with_the_largest_arenas_are_kept() {
    let names: Vec<String> = (0..20).map(|at| format!("a.B::m{at:02}, level 4")).collect();
    let methods: Vec<(&str, u64)> =
        names.iter().enumerate().map(|(at, name)| (name.as_str(), at as u64)).collect();
    let jumps = jumps(&recorded(&[(1, &[]), (200, &methods)]));
    assert_eq!(jumps[0].methods.len(), METHODS_MAX);
    assert_eq!(jumps[0].methods[0].method, "a.B::m19, level 4");
}
