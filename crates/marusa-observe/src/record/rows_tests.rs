use super::*;
use crate::record::Moment;
use crate::record::key::Named;
use crate::record::made_up::small;
use crate::record::reader;
use crate::record::writer::{JvmFacts, Scope, Session, Writer};

/// Holders at the first and the third moment, an account without them between.
#[test]
fn holders_are_as_old_as_their_own_account_and_are_not_gone_with_another() {
    let mut writer = Writer::new(&Session::default());
    let jvm = writer.jvm(JvmFacts::default());
    let holder = |name: &str| Subject::Named(Named::Holder, name.to_string());
    for (at, scope, held) in [
        (0, Scope::AccountWithHolders, Some(("a.B.c", 7))),
        (1000, Scope::Account, None),
        (2000, Scope::AccountWithHolders, Some(("d.E.f", 9))),
    ] {
        let mut figures = vec![
            (Key::process(Measure::AccountAt), Some(at)),
            (Key::of(&Subject::Area(Area::Gc), Measure::Resident), Some(1)),
        ];
        if let Some((name, bytes)) = held {
            figures.push((Key::of(&holder(name), Measure::InUse), Some(bytes)));
            figures.push((Key::process(Measure::HoldersAt), Some(at)));
        }
        writer.sample(jvm, Moment { steady_ms: at + 10, wall_ms: 0 }, scope, &figures);
    }
    let recording = reader::read(&[&writer.take()]).expect("a recording");
    let history = &recording.jvms[0];
    let bytes = |name: &str| history.series(&Key::of(&holder(name), Measure::InUse));
    assert_eq!(bytes("a.B.c"), [Some(7), Some(7), None]);
    assert_eq!(bytes("d.E.f"), [None, None, Some(9)]);
    assert_eq!([0, 1, 2].map(|at| history.age_ms(Measure::HoldersAt, at)), [Some(10), Some(1010), Some(10)]);
    assert_eq!((history.holders(), history.accounts()), (vec![0, 2], vec![0, 1, 2]));
    let mut lines = Vec::new();
    let walked: Result<(), ()> = each(&recording, |row| {
        let is_holder = row.subject == "holder";
        lines.extend(is_holder.then(|| (row.steady_ms, row.name.clone(), row.account_age_ms)));
        Ok(())
    });
    let line = |at, name: &str| (at, Some(name.to_string()), Some(10));
    assert_eq!((walked, lines), (Ok(()), vec![line(10, "a.B.c"), line(2010, "d.E.f")]));
}

#[test]
fn a_line_a_subject_where_the_account_is_new_and_one_of_the_process_elsewhere() {
    let recording = small();
    let mut lines = Vec::new();
    let resident = columns().iter().position(|measure| *measure == Measure::Resident).expect("a column");
    let walked: Result<(), ()> = each(&recording, |row| {
        lines.push((row.time_ms, row.subject, row.area, row.name.clone(), row.values[resident]));
        Ok(())
    });
    assert_eq!(walked, Ok(()));
    let heap = Some("java_heap");
    assert_eq!(
        lines,
        [
            (1000, "process", None, None, None),
            (1000, "area", heap, None, Some(300)),
            (1000, "part", heap, Some("eden".to_string()), Some(200)),
            (1000, "arena", None, Some("0x30".to_string()), None),
            (2000, "process", None, None, None),
        ]
    );
    assert_eq!(each(&recording, |_| Err(3)), Err(3), "a full disk ends it");
}
