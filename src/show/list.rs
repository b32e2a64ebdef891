//! The JVMs of a host, one a line, without the columns that a narrow terminal has no room for, and whole where it is not a
//! terminal; and the same as JSON, schema marusa/list/2.

use super::json::{HiddenRows, PidGap};
use super::paint;
use super::table::Table;
use super::units::{human, shorten, wrapped};
use super::width::width;
use crate::base::style::Style;
use crate::base::{Bytes, Gap, Known};
use crate::map::model::GapRow;
use crate::os::cgroup;
use crate::show::json::Head;
use crate::snapshot::discover::{Jvm, PageMode, Vm};
use crate::snapshot::hidden::Hidden;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// One tool of the JDK has a row of its own.
const TOOLS_SUMMED_MIN: usize = 2;
/// What is left is main's.
const MAIN_COLUMNS_MIN: usize = 12;
const HEADS: [&str; 10] =
    [">PID", "USER", "CONTAINER", "JVM", "GC", ">MAX HEAP", ">RSS", "", "PAGES", "MAIN"];
/// Left out first where there is no room: pages, bar, heap, collector, and on a very narrow terminal user, container, JVM.
const DISPENSABLE: [usize; 7] = [8, 7, 5, 4, 1, 2, 3];

/// `is_whole`: nothing is shortened, for a program that reads it. `has_each`: short-lived tools of the JDK have rows of their own.
pub fn text(out: &mut dyn Write, jvms: &[Jvm], is_whole: bool, has_each: bool) -> io::Result<()> {
    if jvms.is_empty() {
        return writeln!(out, "no JVM on this host that may be seen");
    }
    let table = Table::new(HEADS).without_room(&DISPENSABLE).ends_kept(9, MAIN_COLUMNS_MIN);
    let mut table = table.whole(is_whole);
    let largest = jvms.iter().filter_map(|jvm| jvm.resident_bytes.as_ref().ok()).max().copied().unwrap_or(0);
    let is_tool = |jvm: &&Jvm| jvm.jdk_tool().is_some();
    let (short_lived, others): (Vec<&Jvm>, Vec<&Jvm>) = jvms.iter().partition(is_tool);
    match has_each || short_lived.len() < TOOLS_SUMMED_MIN {
        true => jvms.iter().for_each(|jvm| table.row(row(jvm, largest, is_whole))),
        false => {
            others.into_iter().for_each(|jvm| table.row(row(jvm, largest, is_whole)));
            table.row(tools(&short_lived));
        }
    }
    table.write(out)?;
    hints(out, jvms, if is_whole { usize::MAX } else { width() })
}

/// What was not known, once each, with what would help.
fn hints(out: &mut dyn Write, jvms: &[Jvm], columns: usize) -> io::Result<()> {
    let mut said: Vec<String> = Vec::new();
    for gap in jvms.iter().flat_map(gaps) {
        let hint = gap.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
        let text = format!("? {}: {}{hint}", gap.what, gap.why.word());
        if !said.contains(&text) {
            for (index, line) in wrapped(&text, columns.saturating_sub(2)).iter().enumerate() {
                write!(out, "{}", if index == 0 { "" } else { "  " })?;
                paint::line(out, Style::Dim, line)?;
            }
            said.push(text);
        }
    }
    Ok(())
}

/// The bar is of the largest one's memory.
fn row(jvm: &Jvm, largest: Bytes, is_whole: bool) -> [String; 10] {
    let short = |text: &str, columns| if is_whole { text.to_string() } else { shorten(text, columns) };
    let known = |known: &Known<String>| known.clone().unwrap_or_else(|_| "?".to_string());
    let bytes = |known: &Known<u64>| known.as_ref().map_or("?".to_string(), |bytes| human(*bytes));
    let bar = match &jvm.resident_bytes {
        Ok(bytes) if paint::has_bars() => paint::bar(*bytes, largest),
        _ => String::new(),
    };
    let version = jvm.version.as_deref().map_or("?".to_string(), short_version);
    let version = match jvm.vm {
        Ok(Vm::OpenJ9) => format!("j9 {version}"),
        Ok(Vm::NativeImage) => "native image".to_string(),
        _ => version,
    };
    [
        jvm.process.pid.to_string(),
        short(&jvm.process.user, 9),
        short(container(jvm), 12),
        short(&version, 14),
        known(&jvm.gc).replace("generational", "gen"),
        bytes(&jvm.max_heap_bytes),
        bytes(&jvm.resident_bytes),
        bar,
        jvm.page_mode.as_ref().map_or("?", |mode| pages(*mode)).to_string(),
        main(jvm, is_whole),
    ]
}

/// "17.0.15+6" of "17.0.15+6-Debian-1deb12u1"; "8u442" of "25.442-b06", as the VM of JDK 8 calls itself.
fn short_version(version: &str) -> String {
    let (start, rest) = version.split_once('-').unwrap_or((version, ""));
    match start.strip_prefix("25.") {
        Some(update) if rest.starts_with('b') && !start.contains('+') => format!("8u{update}"),
        _ => start.to_string(),
    }
}

/// The name, or the short id, or the last part of the cgroup.
fn container(jvm: &Jvm) -> &str {
    let label = || cgroup::short(jvm.process.container.as_deref().unwrap_or_default());
    jvm.container_name.as_deref().unwrap_or_else(label)
}

/// The server where it is a known one: in a table as wide as a terminal there is no room for its class, too.
fn main(jvm: &Jvm, is_whole: bool) -> String {
    match (&jvm.server, &jvm.main) {
        (Some(server), Ok(main)) if is_whole => format!("{server} ({main})"),
        _ => jvm.name().unwrap_or("?").to_string(),
    }
}

/// Tools of the JDK that run for a moment, in one row: "4 JDK tools (javac 3, jcmd)".
fn tools(tools: &[&Jvm]) -> [String; 10] {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    tools.iter().filter_map(|jvm| jvm.jdk_tool()).for_each(|tool| *counts.entry(tool).or_default() += 1);
    let names: Vec<String> = counts
        .into_iter()
        .map(|(tool, count)| if count == 1 { tool.to_string() } else { format!("{tool} {count}") })
        .collect();
    let resident = tools.iter().map(|jvm| jvm.resident_bytes.clone().ok()).sum::<Option<Bytes>>();
    let resident = resident.map_or("?".to_string(), human);
    let mut row: [String; 10] = Default::default();
    (row[0], row[6]) = ("-".to_string(), resident);
    row[9] = format!("{} JDK tools ({})", tools.len(), names.join(", "));
    row
}

fn pages(mode: PageMode) -> &'static str {
    match mode {
        PageMode::Small => "4K",
        PageMode::ThpMadvise => "THP madvise",
        PageMode::ThpAlways => "THP always",
        PageMode::Hugetlb => "hugetlb",
    }
}

fn gaps(jvm: &Jvm) -> impl Iterator<Item = &Gap> {
    [
        jvm.vm.as_ref().err(),
        jvm.version.as_ref().err(),
        jvm.gc.as_ref().err(),
        jvm.max_heap_bytes.as_ref().err(),
        jvm.resident_bytes.as_ref().err(),
        jvm.page_mode.as_ref().err(),
        jvm.main.as_ref().err(),
    ]
    .into_iter()
    .flatten()
}

/// Unknown is null, with an entry in `gaps` that names the pid.
#[derive(JsonSchema, Serialize)]
pub struct ListDocument<'a> {
    #[serde(flatten)]
    head: Head,
    jvms: Vec<JvmRow<'a>>,
    gaps: Vec<PidGap<i32>>,
    #[serde(flatten)]
    hidden: HiddenRows<'a>,
}

#[derive(JsonSchema, Serialize)]
struct JvmRow<'a> {
    pid: i32,
    namespace_pid: i32,
    user: &'a str,
    container: Option<&'a str>,
    container_name: Option<&'a str>,
    started: Option<&'a str>,
    vm: Option<&'static str>,
    version: Option<&'a str>,
    gc: Option<&'a str>,
    max_heap_bytes: Option<Bytes>,
    resident_bytes: Option<Bytes>,
    page_mode: Option<&'static str>,
    main: Option<&'a str>,
    server: Option<&'a str>,
}

impl<'a> ListDocument<'a> {
    /// `given_up`: processes that were not read whole, by pid; one that is not a JVM for all that is known is only among the gaps.
    pub fn of(jvms: &'a [Jvm], given_up: &'a [(i32, Gap)], hidden: &'a Hidden) -> ListDocument<'a> {
        let of_jvms = jvms.iter().flat_map(|jvm| gaps(jvm).map(|gap| (jvm.process.pid, gap)));
        let mut all: Vec<(i32, &Gap)> = of_jvms.collect();
        for (pid, gap) in given_up {
            if !all.contains(&(*pid, gap)) {
                all.push((*pid, gap));
            }
        }
        // The reason without its address: so is the word in the table.
        let row = |gap: &Gap| GapRow { why: gap.why.word().to_string(), ..GapRow::from(gap) };
        ListDocument {
            head: Head::now("marusa/list/2"),
            jvms: jvms.iter().map(JvmRow::of).collect(),
            gaps: all.into_iter().map(|(pid, gap)| PidGap { pid, gap: row(gap) }).collect(),
            hidden: HiddenRows::of(hidden),
        }
    }
}

impl<'a> JvmRow<'a> {
    fn of(jvm: &'a Jvm) -> JvmRow<'a> {
        JvmRow {
            pid: jvm.process.pid,
            namespace_pid: jvm.process.namespace_pid,
            user: &jvm.process.user,
            container: jvm.process.container.as_deref(),
            container_name: jvm.container_name.as_deref(),
            started: jvm.process.started.as_deref(),
            vm: jvm.vm.as_ref().ok().map(|vm| match vm {
                Vm::HotSpot => "hotspot",
                Vm::OpenJ9 => "openj9",
                Vm::NativeImage => "native-image",
            }),
            version: jvm.version.as_deref().ok(),
            gc: jvm.gc.as_deref().ok(),
            max_heap_bytes: jvm.max_heap_bytes.as_ref().ok().copied(),
            resident_bytes: jvm.resident_bytes.as_ref().ok().copied(),
            page_mode: jvm.page_mode.as_ref().ok().map(|mode| mode.word()),
            main: jvm.main.as_deref().ok(),
            server: jvm.server.as_deref(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Why;
    use crate::jvm::server;
    use crate::os::target::ProcessFacts;
    use serde_json::{Value, json};

    fn jvm(pid: i32, main: &str) -> Jvm {
        Jvm {
            process: ProcessFacts {
                pid,
                namespace_pid: 1,
                user: "app".to_string(),
                ..ProcessFacts::default()
            },
            container_name: None,
            identity: Default::default(),
            jvm_id: Err(Gap::new("JVM id", Why::Gone)),
            vm: Ok(Vm::HotSpot),
            version: Ok("17.0.15+6".to_string()),
            gc: Ok("g1".to_string()),
            max_heap_bytes: Ok(2 << 30),
            resident_bytes: Ok(300 << 20),
            page_mode: Ok(PageMode::ThpMadvise),
            server: server::name(main, &[]),
            main: Ok(main.to_string()),
        }
    }

    fn denied(pid: i32) -> Jvm {
        let gap = || Gap::new("version", Why::Denied).hint("run as root");
        Jvm { version: Err(gap()), ..jvm(pid, "com.example.Main") }
    }

    #[test]
    fn lines_stay_within_100_columns_and_unknown_is_a_question_mark_with_a_hint() {
        let mut out = Vec::new();
        let long = "com.example.".repeat(20);
        let jvms = [jvm(7, "Main"), jvm(1_234_567, &long), denied(9)];
        let mut whole = Vec::new();
        text(&mut whole, &jvms, true, false).expect("written");
        assert!(String::from_utf8(whole).expect("UTF-8").contains(&long));
        text(&mut out, &jvms, false, false).expect("written");
        let out = String::from_utf8(out).expect("UTF-8");
        assert!(out.lines().all(|line| line.chars().count() <= 100), "{out}");
        assert!(
            out.starts_with("    PID  USER  JVM"),
            "no column for containers that there are none of: {out}"
        );
        assert_eq!(out.lines().last(), Some("? version: denied (run as root)"));
    }

    #[test]
    fn a_narrow_terminal_gets_fewer_columns_and_a_note() {
        let mut out = Vec::new();
        let jvms = [jvm(1_234_567, "com.example.of.a.long.name.Main")];
        crate::show::width::within(64, || text(&mut out, &jvms, false, false)).expect("written");
        let out = String::from_utf8(out).expect("UTF-8");
        assert!(out.lines().all(|line| line.chars().count() <= 64), "{out}");
        assert!(!out.contains("THP madvise") && out.contains("…"), "{out}");
        assert!(out.contains("no room in 64 columns for PAGES"), "{out}");
    }

    #[test]
    fn bars_compare_the_jvms_on_a_terminal_that_has_room() {
        let mut large = jvm(8, "Main");
        large.resident_bytes = Ok(600 << 20);
        let jvms = [jvm(7, "Main"), large];
        let seen = paint::seen(|out| text(out, &jvms, false, false));
        let bars: Vec<usize> = seen.lines().skip(1).map(|line| line.matches('█').count()).collect();
        assert_eq!(bars, [4, 8], "{seen}");
        let narrow = crate::show::width::within(40, || paint::seen(|out| text(out, &jvms, false, false)));
        assert!(narrow.contains("RSS") && narrow.contains("MAIN") && !narrow.contains('█'), "{narrow}");
    }

    #[test]
    fn servers_have_their_names_and_short_lived_tools_one_row() {
        let javac = "jdk.compiler/com.sun.tools.javac.Main";
        let jvms = [
            jvm(7, "kafka.Kafka"),
            jvm(8, javac),
            jvm(9, javac),
            jvm(10, "sun.tools.jcmd.JCmd"),
            jvm(11, "Main"),
        ];
        let shown = |jvms: &[Jvm], is_whole, has_each| {
            let mut out = Vec::new();
            text(&mut out, jvms, is_whole, has_each).expect("written");
            String::from_utf8(out).expect("UTF-8")
        };
        let text = shown(&jvms, false, false);
        assert!(text.contains("  Kafka\n") && !text.contains("kafka.Kafka"), "{text}");
        assert!(text.ends_with("3 JDK tools (javac 2, jcmd)\n") && text.contains("900.0 MiB"), "{text}");
        assert_eq!(text.lines().count(), 4, "{text}");
        let text = shown(&jvms, true, true);
        assert!(text.contains("Kafka (kafka.Kafka)") && text.lines().count() == 6, "{text}");
        assert!(shown(&jvms[..2], true, false).contains(javac), "one has a row of its own");
    }

    #[test]
    fn versions_without_the_name_of_the_builder() {
        let versions = ["17.0.15+6-Debian-1deb12u1", "25.0.2+10-LTS", "25.504-b01", "11.0.13", "1.8.0_442"];
        let short = versions.map(short_version);
        assert_eq!(short, ["17.0.15+6", "25.0.2+10", "8u504", "11.0.13", "1.8.0_442"]);
    }

    #[test]
    fn unknown_is_null_with_a_gap() {
        let jvms = [denied(9)];
        let hidden = Hidden([7, 12].into());
        let value = serde_json::to_value(ListDocument::of(&jvms, &[], &hidden)).expect("JSON");
        assert_eq!((&value["hidden_processes"], &value["hidden_pids"]), (&json!(2), &json!([7, 12])));
        assert!(value["hidden_reason"].is_string(), "{value}");
        assert_eq!(value["jvms"][0]["version"], Value::Null);
        assert_eq!(
            value["gaps"][0],
            json!({"pid": 9, "what": "version", "why": "denied", "hint": "run as root"})
        );
        assert_eq!(value["jvms"][0]["page_mode"], "thp_madvise");
    }
}
