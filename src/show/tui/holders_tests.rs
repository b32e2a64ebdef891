use super::super::model::tests::{look, model};
use super::super::model::{Key, News, View};
use super::*;
use crate::base::{Gap, Why};
use crate::measure::look::Look;

/// A sample with these.
pub fn with(at: f64, holders: Known<Vec<jvm::Held>>) -> News {
    News::Looked(Box::new(Look { holders: Some(holders), ..look(1, at, 100) }))
}

fn rows(model: &Model) -> Vec<(String, Option<u64>, Option<i64>)> {
    model.rows().into_iter().map(|row| (row.name, row.blocks, row.since_mark)).collect()
}

#[test]
fn they_are_read_when_they_are_shown_first_and_when_asked_again() {
    let mut model = model(View::One(1), [look(1, 0.0, 100)]);
    assert_eq!(model.press(Key::Char('5')), Some(Action::Holders(1)));
    assert_eq!(model.press(Key::Down), None, "once");
    assert_eq!(model.holders_age().as_deref(), Some("reading the holders ..."));
    model.learn(News::Looked(Box::new(look(1, 2.0, 100))));
    assert_eq!(rows(&model), [], "another sample has none");
    model.learn(with(3.0, Ok(vec![jvm::Held::made_up("a.B.c", 40_960)])));
    model.learn(News::Looked(Box::new(look(1, 10.0, 100))));
    assert_eq!(rows(&model), [("a.B.c".to_string(), Some(10), None)], "they stay");
    assert_eq!(model.holders_age().as_deref(), Some("holders read 7 s ago, r reads them again"));
    assert_eq!(model.press(Key::Char('r')), Some(Action::Holders(1)));
    model.learn(with(13.0, Ok(vec![jvm::Held::made_up("a.B.c", 81_920), jvm::Held::made_up("d.E.f", 4096)])));
    let grown = [("a.B.c".to_string(), Some(20), Some(40_960)), ("d.E.f".to_string(), Some(1), Some(4096))];
    assert_eq!(rows(&model), grown);
    model.press(Key::Char('1'));
    assert_eq!((model.press(Key::Char('r')), model.holders_age()), (Some(Action::Look), None));
}

#[test]
fn a_reading_that_was_stopped_is_not_repeated_by_itself_and_keeps_what_growth_is_from() {
    let mut model = model(View::One(1), [look(1, 0.0, 100)]);
    model.press(Key::Char('5'));
    model.learn(with(1.0, Ok(vec![jvm::Held::made_up("a.B.c", 4096)])));
    model.learn(with(2.0, Err(Gap::new("the holders of malloc's blocks", Why::OverDeadline))));
    assert_eq!((model.press(Key::Down), rows(&model)), (None, vec![]));
    model.learn(with(3.0, Ok(vec![jvm::Held::made_up("a.B.c", 8192)])));
    assert_eq!(rows(&model)[0].2, Some(4096));
    model.learn(News::Round { pids: vec![], took_ms: 1.0 });
    assert_eq!(model.awaited, None);
}
