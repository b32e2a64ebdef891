//! What must hold on every machine, of the documents that it sent.

use super::Machine;
use super::boot::Sent;
use serde_json::Value;
use std::fmt;
use std::path::Path;
use std::process::Command;

/// The share of the resident memory that may have no owner.
const UNATTRIBUTED_SHARE_MAX: f64 = 0.005;
/// The share of the prediction by which the result may differ.
const TRIM_ERROR_SHARE_MAX: f64 = 0.02;

/// One JVM on one machine.
#[derive(Debug)]
pub struct Row {
    pub machine: &'static str,
    /// "25-g1", or what else was looked at.
    pub jvm: String,
    /// The share of the resident memory.
    pub unattributed: Option<f64>,
    figures: String,
    wrong: Vec<String>,
}

impl Row {
    fn of(machine: &'static str, jvm: impl Into<String>) -> Row {
        Row { machine, jvm: jvm.into(), unattributed: None, figures: String::new(), wrong: Vec::new() }
    }

    pub fn is_right(&self) -> bool {
        self.wrong.is_empty()
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{:<14} {}", self.jvm, self.figures)?;
        self.wrong.iter().try_for_each(|wrong| write!(f, "\n    WRONG: {wrong}"))
    }
}

/// What the mirror had no JDK for is left out.
pub fn of(machine: &Machine, sent: &Sent) -> Vec<Row> {
    let jdks = sent.get("jdks").map(|bytes| String::from_utf8_lossy(bytes).into_owned()).unwrap_or_default();
    let has = |name: &&str| jdks.split_whitespace().any(|jdk| name.starts_with(&format!("{jdk}-")));
    let each = |names: &[&str], check: fn(&'static str, &str, &Sent) -> Row| -> Vec<Row> {
        names.iter().copied().filter(has).map(|name| check(machine.name, name, sent)).collect()
    };
    let mut rows = vec![Row::of(machine.name, "kernel").checked(machine, sent)];
    rows.extend(each(&["17-g1", "25-g1", "25-parallel", "25-z"], need));
    let jvms = ["17-serial", "17-parallel", "17-g1", "17-z", "25-serial", "25-parallel", "25-g1", "25-z"];
    rows.extend(each(&jvms, jvm));
    rows.extend(each(&["17-g1", "25-z"], commands));
    rows.extend(each(&["17-parallel", "25-parallel"], core));
    let groups = ["jvm.of_jvm", "two.of_jvm", "cache", "tmpfs", "dentries", "sockets", "two", "jvm"];
    rows.extend(groups.map(|name| group(machine.name, name, sent)));
    rows
}

impl Row {
    /// The kernel and its pages are the ones that the table names.
    fn checked(mut self, machine: &Machine, sent: &Sent) -> Row {
        let text =
            sent.get("kernel").map(|bytes| String::from_utf8_lossy(bytes).into_owned()).unwrap_or_default();
        self.figures = text.lines().next().unwrap_or_default().to_string();
        if !text.contains(&format!(" {}.", machine.linux))
            || !text.lines().any(|line| line == machine.page_bytes.to_string())
        {
            self.wrong.push(format!("it is not {}: {text}", machine.title()));
        }
        self
    }
}

/// A JVM with explicit large pages takes the pages that the plan counted, of each size, and `undo` leaves none.
fn need(machine: &'static str, name: &str, sent: &Sent) -> Row {
    let mut row = Row::of(machine, format!("need {name}"));
    let found = document(sent, &format!("need.{name}.plan")).and_then(|plan| {
        let (before, after) =
            (pools(sent, &format!("need.{name}.before"))?, pools(sent, &format!("need.{name}.after"))?);
        Ok((plan, before, after))
    });
    let (plan, before, after) = match found {
        Ok(found) => found,
        Err(error) => {
            row.wrong.push(error);
            return row;
        }
    };
    for ((kib, _, free), (_, _, left)) in before.into_iter().zip(after) {
        let of_size = |need: &&Value| need["page_bytes"].as_u64() == Some(kib << 10);
        let needs = || plan["needs"].as_array().into_iter().flatten().filter(of_size);
        let sum = |key: &str| needs().map(|need| need[key].as_u64().unwrap_or(0)).sum::<u64>();
        let (least, most, taken) = (sum("pages_at_least"), sum("pages"), free.saturating_sub(left));
        if most + taken > 0 {
            row.figures += &format!("{taken} of {most} {} KiB pages  ", kib);
        }
        if !(least..=most).contains(&taken) {
            row.wrong.push(format!("took {taken} {kib} KiB pages, not {least} to {most}"));
        }
    }
    for step in ["apply", "verify", "undo"] {
        let text = sent
            .get(&format!("need.{name}.{step}.status"))
            .map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        let text = text.unwrap_or_default();
        if !text.starts_with("0 ") {
            row.wrong.push(format!("{step}: {text}"));
        }
    }
    row
}

const COMMANDS: [&str; 17] = [
    "by-page-size",
    "by-holder",
    "by-loader",
    "by-buffer",
    "by-thread",
    "by-library",
    "by-arena",
    "by-mapping",
    "heap",
    "audit",
    "doctor",
    "why",
    "list",
    "tlb",
    "stalls",
    "collapse",
    "verify",
];

/// Whatever a command cannot do here it says: with an exit status and a message, or in a document with gaps.
fn commands(machine: &'static str, name: &str, sent: &Sent) -> Row {
    let mut row = Row::of(machine, format!("commands {name}"));
    for command in COMMANDS {
        let file = format!("{name}.{command}");
        let status =
            sent.get(&format!("{file}.status")).map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        let status = status.unwrap_or_default();
        let code = status.split(' ').next().unwrap_or_default().to_string();
        match (code.as_str(), document(sent, &file)) {
            ("0", Ok(_)) => {}
            ("1", Ok(_)) => row.figures += &format!("{command} says no  "),
            ("3" | "4", _) if !status.contains("panicked") => {
                row.figures += &format!("{command}: {}  ", status.lines().nth(1).unwrap_or_default());
            }
            (_, Err(error)) => row.wrong.push(error),
            _ => row.wrong.push(format!("{command}: {status}")),
        }
    }
    row
}

/// The core of a JVM gives its account.
fn core(machine: &'static str, name: &str, sent: &Sent) -> Row {
    let mut row = Row::of(machine, format!("core {name}"));
    let both = document(sent, &format!("{name}.live"))
        .and_then(|live| Ok((live, document(sent, &format!("{name}.core"))?)));
    let (live, core) = match both {
        Ok(both) => both,
        Err(error) => {
            row.wrong.push(error);
            return row;
        }
    };
    let of = |map: &Value, name: &str| {
        let areas = map["areas"].as_array().into_iter().flatten();
        areas
            .filter(|area| area["area"] == name)
            .filter_map(|area| area["resident_bytes"].as_i64())
            .sum::<i64>()
    };
    for area in ["java_heap", "class_metadata", "jit_code", "gc", "stack"] {
        let (alive, dead) = (of(&live, area), of(&core, area));
        row.figures += &format!("{area} {:+} KiB  ", (dead - alive) / 1024);
        if (dead - alive).abs() > (256 << 10).max(alive / 50) {
            row.wrong.push(format!("{area}: {alive} bytes alive, {dead} in the core"));
        }
    }
    row
}

/// KiB of a page, pages, and the ones that are free and promised to nobody.
fn pools(sent: &Sent, name: &str) -> Result<Vec<(u64, u64, u64)>, String> {
    let text = sent
        .get(name)
        .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
        .ok_or(format!("no {name}"))?;
    let row = |line: &str| {
        let numbers: Vec<u64> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
        let [kib, pages, free, promised] = numbers[..] else { return None };
        Some((kib, pages, free.saturating_sub(promised)))
    };
    Ok(text.lines().filter_map(row).collect())
}

/// The rows of a cgroup sum to the kernel's figure; what no counter names is below a twentieth, or what the CPUs charge ahead.
fn group(machine: &'static str, name: &str, sent: &Sent) -> Row {
    let mut row = Row::of(machine, format!("cgroup {name}"));
    let ledger = match document(sent, &format!("group.{name}")) {
        Ok(ledger) => ledger,
        Err(error) => {
            row.wrong.push(error);
            return row;
        }
    };
    let rows = ledger["rows"].as_array().map_or(&[][..], Vec::as_slice);
    let bytes = |row: &Value| row["bytes"].as_i64().unwrap_or(i64::MIN / 1000);
    let (used, sum) = (ledger["cgroup_bytes"].as_i64().unwrap_or(-1), rows.iter().map(bytes).sum::<i64>());
    let rest = rows.last().filter(|last| last["item"] == "remainder").map_or(i64::MAX, bytes);
    row.figures = format!("{:.1} MiB, remainder {:.2} MiB", used as f64 / 1048576.0, rest as f64 / 1048576.0);
    if sum != used {
        row.wrong.push(format!("the rows sum to {sum}, not to {used}"));
    }
    // Before 5.13 each counter of memory.stat lags by 32 pages a CPU (mm/memcontrol.c, `MEMCG_CHARGE_BATCH`).
    let lag = if machine.ends_with("-5.10") { 2 << 20 } else { 1 << 20 };
    if rest.saturating_abs() >= (used / 20).max(lag) {
        row.wrong.push(format!("the remainder is too large: {rows:?}"));
    }
    row
}

fn jvm(machine: &'static str, name: &str, sent: &Sent) -> Row {
    let mut row = Row::of(machine, name);
    if let Err(error) = account(&mut row, name, sent).and_then(|()| trim(&mut row, name, sent)) {
        row.wrong.push(error);
    }
    row
}

/// What the machine froze gives its account here too: the file says what is not as here. With MARUSA_BLESS the recording of the one
/// machine with larger pages is kept for `tests/fast/frozen`.
pub fn reads_here(machine: &Machine, sent: &Sent) -> bool {
    let name = format!("{}-{}k-jdk25-g1", machine.processor, machine.page_bytes >> 10);
    let (Some(frozen), Ok(there)) = (sent.get("25-g1.frozen"), document(sent, "25-g1.again")) else {
        println!("{}: no frozen JVM", machine.name);
        return false;
    };
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.frozen"));
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/frozen").join(format!("{name}.frozen"));
    std::fs::write(&file, frozen).expect("written");
    if kept.exists() && std::env::var_os("MARUSA_BLESS").is_some() {
        std::fs::write(&kept, frozen).expect("written");
    }
    let output =
        Command::new(env!("CARGO_BIN_EXE_marusa")).arg("map").arg("--from").arg(&file).arg("--json").output();
    let output = output.expect("marusa starts").stdout;
    let here: Value = serde_json::from_slice(&output).unwrap_or_default();
    let is_same = ["totals", "areas", "jvm"].iter().all(|key| here[*key] == there[*key]);
    if !is_same {
        println!("{}: a frozen JVM has another account here: {}", machine.name, file.display());
    }
    is_same
}

/// A document of the machine, or why there is none.
fn document(sent: &Sent, name: &str) -> Result<Value, String> {
    let text = |name: &str| {
        sent.get(name).map(|bytes| String::from_utf8_lossy(bytes).into_owned()).unwrap_or_default()
    };
    serde_json::from_str(&text(name))
        .map_err(|error| format!("{name}: {error}; {}{}", text(&format!("{name}.status")), text("failed")))
}

fn account(row: &mut Row, name: &str, sent: &Sent) -> Result<(), String> {
    let map = document(sent, &format!("{name}.map"))?;
    let total = |key: &str| map["totals"][key].as_f64().unwrap_or(f64::NAN);
    let balance = total("resident_bytes") + map["totals"]["aliased_bytes"].as_f64().unwrap_or(0.0)
        - total("kernel_resident_bytes");
    let share = total("unattributed_bytes") / total("resident_bytes");
    row.figures += &format!(
        "resident {:>5.1} MiB, unattributed {:.2} %",
        total("resident_bytes") / 1048576.0,
        share * 100.0
    );
    if balance != 0.0 {
        row.wrong.push(format!("the balance is {balance} bytes"));
    }
    row.unattributed = Some(share).filter(|share| share.is_finite());
    if share.is_nan() || share > UNATTRIBUTED_SHARE_MAX {
        row.wrong.push(format!("{:.2} % has no owner", share * 100.0));
    }
    // A figure that is null has a gap of its name in every account.
    let is_null = |gap: &&Value| {
        gap["what"].as_str().is_some_and(|what| what.starts_with("areas.") || what.starts_with("totals."))
    };
    for gap in map["gaps"].as_array().into_iter().flatten().filter(|gap| !is_null(gap)) {
        row.wrong.push(format!("gap {gap}"));
    }
    let again = document(sent, &format!("{name}.again"))?;
    for key in ["totals", "areas"] {
        if alone(&map[key]) != alone(&again[key]) {
            row.wrong.push(format!("frozen and live differ in {key}"));
        }
    }
    Ok(())
}

/// Without the shares of pages that others map too: those start and end.
fn alone(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let kept = map.iter().filter(|(key, _)| *key != "proportional_bytes");
            Value::Object(kept.map(|(key, value)| (key.clone(), alone(value))).collect())
        }
        Value::Array(values) => Value::Array(values.iter().map(alone).collect()),
        other => other.clone(),
    }
}

fn trim(row: &mut Row, name: &str, sent: &Sent) -> Result<(), String> {
    let trim = document(sent, &format!("{name}.trim"))?;
    let figure = |key: &str| trim["outcome"][key].as_f64().unwrap_or(f64::NAN);
    let error = (figure("predicted_bytes") - figure("returned_bytes")).abs() / figure("predicted_bytes");
    row.figures +=
        &format!(", trim {:.1} MiB, off by {:.2} %", figure("returned_bytes") / 1048576.0, error * 100.0);
    if error.is_nan() || error > TRIM_ERROR_SHARE_MAX {
        row.wrong.push(format!("trim: {}", trim["outcome"]));
    }
    Ok(())
}
