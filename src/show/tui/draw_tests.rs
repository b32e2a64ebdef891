use super::*;
use crate::base::{Gap, Why};
use crate::jvm::Held;
use crate::measure::look::Look;
use crate::show::tui::holders::tests::with;
use crate::show::tui::model::tests::{look, model};
use crate::show::tui::{Key, News};
use ratatui::Terminal;
use ratatui::backend::TestBackend;

const PLAIN: Style = Style { has_colour: false };
const COLOURED: Style = Style { has_colour: true };

/// The screen as lines.
fn screen(model: &mut Model, width: u16, height: u16, style: Style) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a screen");
    terminal.draw(|frame| draw(frame, model, style)).expect("drawn");
    let buffer = terminal.backend().buffer().clone();
    let line = |y: u16| (0..width).map(|x| buffer[(x, y)].symbol().to_string()).collect::<String>();
    (0..height).map(|y| line(y).trim_end().to_string()).collect()
}

#[test]
fn all_jvms_at_80_by_24() {
    let mut model = model(View::All, [look(1, 0.0, 100), look(2, 0.0, 300)]);
    model.press(Key::Char('m'));
    model.learn(News::Looked(Box::new(look(2, 1.0, 302))));
    let lines = screen(&mut model, 80, 24, PLAIN);
    assert!(lines[0].starts_with("2 JVMs  422.0 MiB in memory  mark 1 s ago"), "{lines:#?}");
    assert!(
        lines[1].starts_with("PID     JVM") && lines[1].contains("RATE") && lines[1].contains("MARK"),
        "{lines:#?}"
    );
    assert!(lines[2].starts_with("2       com.example.Main") && lines[2].contains("312.0 MiB"), "{lines:#?}");
    assert!(lines[2].contains("+2.0 MiB/s") && lines[2].contains("+2.0 MiB"), "{lines:#?}");
    assert!(
        lines[2].contains("HHHH") && lines[22].contains("H Java heap"),
        "letters without colour: {lines:#?}"
    );
    assert!(lines[23].contains("? help") && lines[23].contains("q quit"), "{lines:#?}");
    assert!(lines.iter().all(|line| line.chars().count() <= 80));
}

#[test]
fn names_are_whole_at_80_columns_and_of_longer_ones_the_end_is_kept() {
    let named = |pid: i32, name: &str| Look { name: name.to_string(), ..look(pid, 0.0, 100) };
    let mut known = model(View::All, [named(1, "org.apache.catalina.startup.Bootstrap")]);
    let lines = screen(&mut known, 80, 24, PLAIN);
    assert!(lines[2].contains(" org.apache.catalina.startup.Bootstrap "), "{lines:#?}");
    let long = format!("com.{}.OrdersApplication", "example.".repeat(9));
    let mut known = model(View::All, [named(1, &long), named(2, "Kafka")]);
    let lines = screen(&mut known, 80, 24, PLAIN);
    assert!(
        lines.iter().any(|line| line.contains("…") && line.contains(".OrdersApplication ")),
        "{lines:#?}"
    );
    assert!(lines.iter().any(|line| line.contains(" Kafka ")), "{lines:#?}");
}

#[test]
fn while_not_all_are_read_there_is_no_sum() {
    let mut model = Model::new(View::All);
    model.learn(News::Begun { pids: (1..=14).collect(), host: None });
    for pid in 1..=3 {
        model.learn(News::Looked(Box::new(look(pid, 0.0, 100))));
    }
    let lines = screen(&mut model, 80, 24, PLAIN);
    assert!(lines[0].starts_with("reading 3 of 14 JVMs") && !lines[0].contains("in memory"), "{lines:#?}");
    for pid in 4..=14 {
        model.learn(News::Looked(Box::new(look(pid, 0.0, 100))));
    }
    let lines = screen(&mut model, 80, 24, PLAIN);
    assert!(lines[0].starts_with("14 JVMs  1.5 GiB in memory"), "{lines:#?}");
    // One that ended before its turn holds the sum up for this round only.
    model.learn(News::Begun { pids: (1..=15).collect(), host: None });
    assert!(screen(&mut model, 80, 24, PLAIN)[0].starts_with("reading 14 of 15 JVMs"));
    model.learn(News::Round { pids: (1..=14).collect(), took_ms: 1.0 });
    assert!(screen(&mut model, 80, 24, PLAIN)[0].starts_with("14 JVMs"));
}

#[test]
fn the_history_and_the_share_of_the_limit() {
    let limit = MemoryLimit { of: LimitOf::Cgroup, limit_bytes: 512 << 20, used_bytes: 410 << 20 };
    let mut model = Model::new(View::All);
    let host = MemoryLimit { of: LimitOf::Host, limit_bytes: 16 << 30, used_bytes: 4 << 30 };
    model.learn(News::Begun { pids: vec![1], host: Some(host) });
    for (second, heap) in [100, 200, 300].into_iter().enumerate() {
        let look = Look { memory_limit: Some(limit), ..look(1, second as f64, heap) };
        model.learn(News::Looked(Box::new(look)));
    }
    let lines = screen(&mut model, 80, 24, PLAIN);
    assert!(lines[0].ends_with("host 16.0 GiB, 25 % used"), "{lines:#?}");
    assert!(lines[1].contains("OF LIMIT") && lines[1].contains("HISTORY"), "{lines:#?}");
    assert!(lines[2].contains("     80 %") && lines[2].contains("_=#"), "{lines:#?}");
    let lines = screen(&mut model, 100, 24, COLOURED);
    assert!(lines[2].contains("▁▅█"), "{lines:#?}");
    model.press(Key::Enter);
    let lines = screen(&mut model, 80, 24, PLAIN);
    assert!(lines[0].ends_with("limit 512.0 MiB, 80 % used"), "{lines:#?}");
    assert!(lines[3].starts_with("+ Java heap") && lines[3].contains("_=#"), "{lines:#?}");
    assert!(lines[4].starts_with("+ class metadata") && lines[4].contains("___"), "{lines:#?}");
}

#[test]
fn short_lived_tools_are_one_row() {
    let tool = |pid: i32| Look { is_jdk_tool: true, ..look(pid, 0.0, 40) };
    let mut model = model(View::All, [look(1, 0.0, 100), tool(2), tool(3)]);
    let lines = screen(&mut model, 80, 24, PLAIN);
    assert!(lines[0].starts_with("3 JVMs") && lines[3].contains("2 JDK tools"), "{lines:#?}");
    assert!(lines[3].contains("100.0 MiB") && lines[4].is_empty(), "{lines:#?}");
    model.press(Key::End);
    model.press(Key::Enter);
    assert_eq!(model.view, View::All, "there is no single JVM behind that row");
}

#[test]
fn one_jvm_and_its_tabs() {
    let mut model = model(View::One(1), [look(1, 0.0, 100)]);
    model.press(Key::Enter);
    let lines = screen(&mut model, 80, 24, COLOURED);
    assert!(lines[0].starts_with("1 com.example.Main1  21.0.8, g1  110.0 MiB"), "{lines:#?}");
    assert!(lines[1].starts_with(" 1 areas  2 page sizes  3 arenas  4 threads"), "{lines:#?}");
    assert!(lines[3].starts_with("- Java heap") && lines[4].trim_start().starts_with("eden"), "{lines:#?}");
    assert!(lines[23].contains("Esc back") && lines[23].ends_with("? help  q quit"), "{lines:#?}");
    model.press(Key::Char('2'));
    let lines = screen(&mut model, 80, 24, PLAIN);
    assert!(lines[3].starts_with("4 KiB pages") && lines[4].starts_with("    Java heap"), "{lines:#?}");
    model.press(Key::Char('4'));
    let lines = screen(&mut model, 80, 24, COLOURED);
    assert!(lines[2].starts_with("THREADS"), "{lines:#?}");
    let all = lines.concat();
    assert!(all.contains("http\\u001b[2J-nio"), "escapes are shown, not sent: {lines:#?}");
}

#[test]
fn holders_have_their_age_and_what_they_hold() {
    let mut model = model(View::One(1), [look(1, 0.0, 100)]);
    model.press(Key::Char('5'));
    let lines = screen(&mut model, 80, 24, PLAIN);
    assert!(lines[0].ends_with("reading the holders ..."), "{lines:#?}");
    let held = Held::made_up("org.rocksdb.LRUCache\u{1b}[2J.nativeHandle_", 40 << 20);
    model.learn(with(4.0, Ok(vec![held])));
    model.learn(News::Looked(Box::new(look(1, 9.0, 100))));
    let lines = screen(&mut model, 100, 24, PLAIN);
    assert!(lines[0].ends_with("holders read 5 s ago, r reads them again"), "{lines:#?}");
    assert!(lines[1].contains(" 5 holders"), "{lines:#?}");
    assert!(lines[2].starts_with("HOLDERS") && lines[2].contains("BYTES     BLOCKS HOW, C++"), "{lines:#?}");
    assert!(lines[3].starts_with("org.rocksdb.LRUCache\\u001b[2J.nativeHandle_ "), "{lines:#?}");
    assert!(
        lines[3].contains("40.0 MiB") && lines[3].ends_with("10240 field, rocksdb::LRUCache"),
        "{lines:#?}"
    );
    assert!(lines[23].starts_with("r read again"), "{lines:#?}");
    model.learn(with(10.0, Err(Gap::new("the holders of malloc's blocks", Why::OverDeadline))));
    assert!(screen(&mut model, 80, 24, PLAIN)[3].contains("the holders of malloc's blocks"));
}

#[test]
fn every_size_of_screen_shows_something_and_none_panics() {
    for style in [PLAIN, COLOURED] {
        for width in [1, 19, 20, 39, 40, 41, 57, 64, 80, 132, 300] {
            for height in [1, 2, 5, 6, 7, 24, 100] {
                let mut model = model(View::All, (1..=40).map(|pid| look(pid, 0.0, 100 + pid as u64)));
                for keys in
                    [&[][..], &[Key::Char('m')], &[Key::Char('?')], &[Key::Char('x'), Key::End, Key::Enter]]
                {
                    keys.iter().for_each(|key| {
                        model.press(*key);
                    });
                    screen(&mut model, width, height, style);
                }
            }
        }
    }
    let mut model = model(View::All, [look(1, 0.0, 100)]);
    let lines = screen(&mut model, 20, 24, PLAIN);
    assert!(lines.join(" ").contains("is too small"), "{lines:#?}");
}

#[test]
fn an_empty_host_and_a_help() {
    let mut model = model(View::All, []);
    assert!(screen(&mut model, 80, 24, PLAIN).concat().contains("no JVM runs"));
    model.press(Key::Char('?'));
    let lines = screen(&mut model, 80, 24, PLAIN);
    assert!(lines.concat().contains("set the mark"), "{lines:#?}");
    model.press(Key::Char('x'));
    assert!(!screen(&mut model, 80, 24, PLAIN).concat().contains("set the mark"));
}

#[test]
fn bars_are_as_long_as_their_share_of_the_largest() {
    let mut model = model(View::All, [look(1, 0.0, 90), look(2, 0.0, 190)]);
    let lines = screen(&mut model, 120, 24, PLAIN);
    let bar = |line: &str| line.chars().rev().take_while(|letter| "HM".contains(*letter)).count();
    let (large, small) = (bar(&lines[2]), bar(&lines[3]));
    assert!(large >= 20 && (large / 2).abs_diff(small) <= 1, "{large} and {small}: {lines:#?}");
}
