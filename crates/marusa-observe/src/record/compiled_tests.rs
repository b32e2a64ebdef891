use super::*;
use crate::record::made_up::recorded;

const MIB: u64 = 1 << 20;

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
