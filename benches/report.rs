//! How long a page of an hour takes: to make, to open in a headless browser, and to move within.
//! `cargo bench --bench report`.

use marusa::map::Area;
use marusa::measure::history::{History, Row};
use marusa::show::html::{self, Page};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command};
use std::time::Instant;

const ROUNDS: usize = 7;
const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

fn main() {
    let directory = std::env::temp_dir().join(format!("marusa-bench-report-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory");
    for (name, moments, jvms) in
        [("10 minutes", 600, 1), ("an hour", 3600, 1), ("a day", 86_400, 1), ("an hour, 50 JVMs", 3600, 50)]
    {
        let histories: Vec<History> = (0..jvms).map(|pid| history(pid, moments)).collect();
        let (mut making, mut text) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let started = Instant::now();
            text = page(&histories);
            making.push(started.elapsed().as_secs_f64());
        }
        let file = directory.join("page.html");
        std::fs::write(&file, &text).expect("written");
        println!(
            "{name}: {:.1} MB, made in {:.0} ms; {}",
            text.len() as f64 / 1e6,
            median(making) * 1e3,
            opened(&directory, &file)
        );
    }
    let _ = std::fs::remove_dir_all(&directory);
}

/// Each second; a saw-tooth in the heap, growth in malloc, 75 parts of which a third changes each time.
fn history(pid: i32, moments: usize) -> History {
    let all = Area::ALL.iter().flat_map(|area| (0..5).map(move |part| (*area, part))).enumerate();
    let bytes = |index: usize, at: usize| match index % 3 {
        0 => ((10 + index as u64 + at as u64 % 60) << 18) + at as u64 * 100,
        _ => (index as u64 + at as u64 / 600) << 20,
    };
    let rows: Vec<Row> = all
        .map(|(index, (area, part))| Row {
            area,
            part: format!("part {part}"),
            resident_bytes: (0..moments).map(|at| Some(bytes(index, at))).collect(),
        })
        .collect();
    let sum = |at: usize| Some((0..rows.len()).map(|index| bytes(index, at)).sum::<u64>());
    let kernel = (0..moments).map(sum).collect();
    let times = (0..moments).map(|at| 1.76e9 + at as f64).collect();
    let (name, runtime) = ("com.example.Main".to_string(), "21.0.8, g1".to_string());
    History::of_rows(pid, name, runtime, times, kernel, rows, Vec::new())
}

fn page(histories: &[History]) -> Vec<u8> {
    let page = Page {
        title: "an hour".to_string(),
        made_at: String::new(),
        moment: None,
        histories,
        others: None,
        growth: &[],
        findings: None,
        gaps: &[],
        nonce: "0123".to_string(),
    };
    let mut out = Vec::new();
    html::page(&mut out, &page).expect("memory takes all");
    out
}

/// What a page of the browser is asked for, with the clock of the machine, not the browser's virtual one.
const PAINTED: &str = "new Promise(done => { const look = () => { const ready = document.documentElement?.dataset.readyMs;\
    const paint = performance.getEntriesByName('first-contentful-paint')[0];\
    ready && paint ? done([paint.startTime, Number(ready)]) : setTimeout(look, 5); }; look(); })";
/// Zoomed in, a hundred steps to the left and right: the work of each step, and the frames a second where each frame is a step.
const PANNED: &str = "(async () => { const chart = document.querySelector('.chart'); const frame = () => new Promise(requestAnimationFrame);\
    const press = key => chart.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));\
    for (const key of '+++++') { press(key); await frame(); } const work = []; const from = performance.now();\
    for (let at = 0; at < 100; at++) { await frame(); const start = performance.now(); press(at % 20 < 10 ? 'ArrowLeft' : 'ArrowRight');\
    for (let turn = 0; turn < 5; turn++) await null; work.push(performance.now() - start); }\
    const seconds = (performance.now() - from) / 1e3; work.sort((one, other) => one - other);\
    return [work[50], work[99], 100 / seconds]; })()";

fn opened(directory: &Path, file: &Path) -> String {
    let works = |name: &&&str| {
        Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success())
    };
    let Some(name) = BROWSERS.iter().find(works) else { return "no browser".to_string() };
    let mut browser = Browser::start(name, directory);
    let (mut painted, mut ready, mut work, mut worst, mut frames) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        browser.call("Page.navigate", &json!({"url": format!("file://{}", file.display())}));
        let [paint, all] = browser.numbers(PAINTED);
        let [middle, most, per_second] = browser.numbers(PANNED);
        painted.push(paint);
        ready.push(all);
        work.push(middle);
        worst.push(most);
        frames.push(per_second);
    }
    browser.end();
    format!(
        "first paint {}, all drawn {}; a step of moving {} of work ({} at most), {} frames a second",
        spread(painted, "ms"),
        spread(ready, "ms"),
        spread(work, "ms"),
        spread(worst, "ms"),
        spread(frames, "").trim_end()
    )
}

/// "210 ms (190 to 260)".
fn spread(mut figures: Vec<f64>, unit: &str) -> String {
    figures.sort_by(f64::total_cmp);
    let (least, most) = (figures[0], figures[figures.len() - 1]);
    let digits = usize::from(most < 20.0);
    format!("{:.digits$} {unit} ({least:.digits$} to {most:.digits$})", median(figures))
}

/// A browser that is spoken to through two pipes (its `--remote-debugging-pipe`: JSON, each message ends with a zero).
struct Browser {
    child: Child,
    into: File,
    from: BufReader<File>,
    session: Option<String>,
    number: u64,
}

impl Browser {
    fn start(name: &str, directory: &Path) -> Browser {
        let (into, from) = (directory.join("into"), directory.join("from"));
        for pipe in [&into, &from] {
            let _ = std::fs::remove_file(pipe);
            assert!(Command::new("mkfifo").arg(pipe).status().expect("mkfifo").success());
        }
        let line = format!(
            "exec {name} --headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run \
             --disable-background-networking --disable-component-update --disable-extensions --window-size=1280,900 \
             --user-data-dir='{}' --remote-debugging-pipe about:blank 3<'{}' 4>'{}' 2>/dev/null",
            directory.join("profile").display(),
            into.display(),
            from.display()
        );
        let child = Command::new("sh").args(["-c", &line]).spawn().expect("the browser starts");
        let into = File::options().write(true).open(into).expect("a pipe");
        let from = BufReader::new(File::open(from).expect("a pipe"));
        let mut browser = Browser { child, into, from, session: None, number: 0 };
        let target = browser.call("Target.createTarget", &json!({"url": "about:blank"}));
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let session = browser.call("Target.attachToTarget", &attach);
        browser.session = session["sessionId"].as_str().map(str::to_string);
        browser
    }

    fn call(&mut self, method: &str, parameters: &Value) -> Value {
        self.number += 1;
        let mut message = json!({"id": self.number, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            message["sessionId"] = session.as_str().into();
        }
        self.into.write_all(format!("{message}\0").as_bytes()).expect("it listens");
        loop {
            let mut bytes = Vec::new();
            self.from.read_until(0, &mut bytes).expect("it answers");
            let answer: Value =
                serde_json::from_slice(&bytes[..bytes.len().saturating_sub(1)]).expect("JSON");
            if answer["id"] == self.number {
                assert_eq!(answer["error"], Value::Null, "{method}");
                return answer["result"].clone();
            }
        }
    }

    /// What a promise of numbers gives.
    fn numbers<const COUNT: usize>(&mut self, code: &str) -> [f64; COUNT] {
        let ask = json!({"expression": code, "awaitPromise": true, "returnByValue": true});
        let answer = self.call("Runtime.evaluate", &ask);
        let list = answer["result"]["value"].as_array().unwrap_or_else(|| panic!("{answer}"));
        std::array::from_fn(|at| list[at].as_f64().expect("a number"))
    }

    fn end(mut self) {
        self.session = None;
        self.call("Browser.close", &json!({}));
        let _ = self.child.wait();
    }
}

fn median(mut seconds: Vec<f64>) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}
