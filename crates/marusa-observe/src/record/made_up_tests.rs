//! Recordings that tests make up, of this crate and of others.

use super::compiled::Before;
use super::history::{History, Recording};
use super::key::{Key, Measure, Named, Subject};
use super::writer::{JvmFacts, Scope, Session, Writer};
use super::{Moment, figures, reader};
use crate::map::Area;
use crate::map::rows::Row;

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

/// Two moments of one JVM; only the first has an account. A name is what people fear in one.
pub fn small() -> Recording {
    let mut writer = Writer::new(&Session::default());
    let main = Some("<b>\"x\",\n\u{1b}[2J".to_string());
    let jvm = writer.jvm(JvmFacts { pid: 7, main, ..JvmFacts::default() });
    let key = |subject: Subject, measure| Key { subject, measure };
    writer.sample(
        jvm,
        Moment { steady_ms: 0, wall_ms: 1000 },
        Scope::Account,
        &[
            (Key::process(Measure::AccountAt), Some(0)),
            (Key::process(Measure::KernelResident), Some(500)),
            (key(Subject::Area(Area::JavaHeap), Measure::Resident), Some(300)),
            (key(Subject::Part(Area::JavaHeap, "eden".to_string()), Measure::Resident), Some(200)),
            (key(Subject::Arena(0x30), Measure::Freed), Some(9)),
        ],
    );
    let figures = [(Key::process(Measure::KernelResident), Some(510))];
    writer.sample(jvm, Moment { steady_ms: 1000, wall_ms: 2000 }, Scope::Glance, &figures);
    reader::read(&[&writer.take()]).expect("a recording")
}
