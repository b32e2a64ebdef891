//! A plan as text: what it is for and whether it is available, the need by reservation, what the host has, what changes, how the
//! JVM is started, what it costs, and how it is applied, held against the JVM, and undone.

use super::steps;
use crate::os::machine::base_page;
use crate::pages::feasible::size_name;
use crate::pages::{Feasible, How, Mode, Need, Plan, Step, Vm};
use crate::show::table::Table;
use crate::show::units::{human, led, pasted, shorten};
use crate::show::width::width;
use std::io::{self, Write};

const RULE_COLUMNS: usize = 28;
/// What a command leaves for the file of the plan.
const FILE_COLUMNS: usize = 60;

/// `file`: where the plan was written to.
pub fn text(out: &mut dyn Write, plan: &Plan, file: Option<&str>) -> io::Result<()> {
    head(out, plan)?;
    needs(out, plan)?;
    host(out, plan)?;
    changes(out, plan)?;
    jvm(out, plan)?;
    list(out, "costs", &plan.costs)?;
    list(out, "risks", &plan.risks)?;
    let gaps: Vec<String> = plan.gaps.iter().map(|gap| gap.to_string()).collect();
    list(out, "not known", &gaps)?;
    next(out, plan, file)
}

fn head(out: &mut dyn Write, plan: &Plan) -> io::Result<()> {
    let subject = &plan.subject;
    let (vm, gc) = match subject.vm {
        Vm::HotSpot => ("HotSpot", subject.gc.name()),
        Vm::OpenJ9 => ("OpenJ9", subject.flags.get("Xgcpolicy").map_or("gencon", String::as_str)),
    };
    let version = subject.version.clone().unwrap_or_else(|| subject.feature.to_string());
    let times =
        if plan.outlook.instances > 1 { format!("{} x ", plan.outlook.instances) } else { String::new() };
    let initial = match subject.heap_initial_bytes == subject.heap_max_bytes {
        true => String::new(),
        false => format!(" (starts with {})", human(subject.heap_initial_bytes)),
    };
    let who = format!(
        "{times}{vm} {version}, {gc}, heap {}{initial}, {} CPUs",
        human(subject.heap_max_bytes),
        subject.cpus
    );
    writeln!(out, "plan {}", shorten(&plan.outlook.name, width() - 5))?;
    writeln!(out, "for  {}", shorten(&who, width() - 5))?;
    if let Some(home) = &subject.java_home {
        writeln!(out, "     {}", shorten(home, width() - 5))?;
    }
    led(out, "mode ", mode_name(plan.mode))?;
    if let Some(why) = &plan.outlook.mode_why {
        led(out, "     ", why)?;
    }
    let word = match plan.outlook.feasible {
        Feasible::Yes => "YES",
        Feasible::Perhaps => "PERHAPS",
        Feasible::No => "NO",
    };
    let answer = format!("{word}, {}", plan.outlook.feasible_why);
    led(out, "now? ", &answer)
}

pub fn mode_name(mode: Mode) -> &'static str {
    match mode {
        Mode::HugeTlb => "hugetlb: pages of the host's default size that are set aside",
        Mode::HugeTlb2M => "hugetlb-2m: 2M pages that are set aside",
        Mode::HugeTlb1G => "hugetlb-1g: 1G pages for the heap, of 2M for the rest, set aside",
        Mode::Thp => "thp: transparent huge pages, taken as memory is used",
    }
}

fn needs(out: &mut dyn Write, plan: &Plan) -> io::Result<()> {
    let titles = ["NEED, AS THE JVM RESERVES", ">BYTES", ">PAGES", ">OF", "RULE"];
    let mut table = Table::new(titles).without_room(&[4]).shortened(0, 30);
    for need in plan.needs.iter().filter(|need| need.page_bytes > base_page()) {
        let name = format!("{} ({})", need.part, need.area.title());
        let (bytes, size) = (human(need.bytes), size_name(need.page_bytes));
        table.row([name, bytes, need.pages.to_string(), size, rule(&need.rule)]);
    }
    table.write_below(out)?;
    let small: Vec<&Need> = plan.needs.iter().filter(|need| need.page_bytes <= base_page()).collect();
    if !small.is_empty() {
        let bytes = small.iter().map(|need| need.bytes).fold(0, u64::saturating_add);
        let names: Vec<&str> = small.iter().map(|need| need.part.as_str()).collect();
        let text = format!("on 4K, since the JVM asks for no more: {} ({})", names.join(", "), human(bytes));
        led(out, "", &text)?;
    }
    Ok(())
}

/// The rule without its source, which --json has, as far as there is room.
fn rule(text: &str) -> String {
    let text = text.split(" (").next().unwrap_or(text);
    let cut = text.split(", ").next().unwrap_or(text);
    let text = if text.chars().count() > RULE_COLUMNS { cut } else { text };
    shorten(text, RULE_COLUMNS)
}

fn host(out: &mut dyn Write, plan: &Plan) -> io::Result<()> {
    let titles = ["THE HOST", ">NEEDED", ">FREE", ">TO ADD", ">AT ONCE", ">AT MOST", "HOW"];
    let mut table = Table::new(titles).without_room(&[6]);
    for pool in &plan.pools {
        let size = plan.outlook.sizes.iter().find(|size| size.page_bytes == pool.page_bytes);
        let (once, most) = size.map_or((0, 0), |size| (size.at_once_pages, size.at_most_pages));
        let numbers =
            [pool.pages, pool.free_pages, pool.add_pages, once, most].map(|number| number.to_string());
        let [pages, free, add, once, most] = numbers;
        let (name, how) = (format!("{} pages", size_name(pool.page_bytes)), how_name(pool.how).to_string());
        table.row([name, pages, free, add, once, most, how]);
        if let (Some(limit), Some(file)) =
            (size.and_then(|size| size.limit_pages), size.and_then(|size| size.limit_file.as_deref()))
        {
            table.note("         ", &format!("cgroup limit: {limit} ({file})"));
        }
        if pool.why != plan.outlook.feasible_why {
            table.note("         ", &pool.why);
        }
    }
    if plan.mode == Mode::Thp {
        for size in &plan.outlook.sizes {
            let wanted: u64 =
                plan.needs.iter().filter(|need| need.page_bytes > base_page()).map(|need| need.pages).sum();
            let name = format!("{} pages", size_name(size.page_bytes));
            let wanted = wanted.saturating_mul(plan.outlook.instances);
            let numbers = [wanted, size.at_once_pages, size.at_most_pages].map(|number| number.to_string());
            let [wanted, once, most] = numbers;
            let none = || "-".to_string();
            table.row([name, wanted, none(), none(), once, most, "as used".to_string()]);
        }
    }
    table.write_below(out)?;
    let memory = &plan.outlook.memory;
    let line = format!(
        "memory {}, available {}, taken now {}, left {} (at least {} stays with the host)",
        human(memory.total_bytes),
        human(memory.available_bytes),
        human(memory.taken_bytes),
        human(memory.left_bytes),
        human(memory.reserve_bytes)
    );
    led(out, "", &line)?;
    if memory.nodes.len() > 1 {
        for node in &memory.nodes {
            let free = human(node.free_bytes);
            let text = format!("node {}: {free} free, 2M pages at once: {}", node.node, node.at_once_pages);
            led(out, "", &text)?;
        }
    }
    Ok(())
}

fn how_name(how: How) -> &'static str {
    match how {
        How::Free => "there already",
        How::Pool => "pool, taken now",
        How::Overcommit => "overcommit, taken at start",
        How::Boot => "at boot only",
    }
}

fn changes(out: &mut dyn Write, plan: &Plan) -> io::Result<()> {
    writeln!(out, "\nCHANGES NOW")?;
    if plan.steps.is_empty() {
        let none = match plan.outlook.feasible {
            Feasible::No => "none: not available now",
            _ => "none: the host is set as it must be",
        };
        writeln!(out, "  {none}")?;
    }
    plan.steps.iter().try_for_each(|step| one_step(out, step))?;
    if !plan.boot.is_empty() {
        let words = plan.boot.join(" ");
        led(out, "  ", &format!("kernel command line, at the next start of the host: {words}"))?;
    }
    if !plan.persist.is_empty() {
        writeln!(out, "WITH --persist ALSO, FOR THE NEXT START OF THE HOST")?;
    }
    plan.persist.iter().try_for_each(|step| one_step(out, step))
}

fn one_step(out: &mut dyn Write, step: &Step) -> io::Result<()> {
    led(out, "  ", &step.what)?;
    writeln!(out, "    {}", shorten(&steps::described(&step.change), width() - 4))?;
    steps::file_text(&step.change).iter().try_for_each(|line| writeln!(out, "    {line}"))?;
    step.risk.iter().try_for_each(|risk| led(out, "    ", risk))
}

fn jvm(out: &mut dyn Write, plan: &Plan) -> io::Result<()> {
    writeln!(out, "\nSTART THE JVM WITH")?;
    led(out, "  ", &plan.jvm_options.join(" "))?;
    if !plan.outlook.recommended.is_empty() {
        let text = format!(
            "{} was not given and is a recommendation: a heap that starts whole needs no pages later (--initial-heap \
             sets another)",
            plan.outlook.recommended.join(" ")
        );
        led(out, "  ", &text)?;
    }
    if plan.jvm_options.iter().all(|option| !option.starts_with("-Xmx")) {
        let subject = &plan.subject;
        // No options: whether it was started with -Xms, or starts with what the JVM chose, is not in its flags.
        let text = format!(
            "next to what it is started with now: a heap of at most {} that starts with {}",
            human(subject.heap_max_bytes),
            human(subject.heap_initial_bytes)
        );
        led(out, "  ", &text)?;
    }
    if let Some(threads) = &plan.gc_threads {
        let concurrent = threads.concurrent.map_or(String::new(), |number| format!(", concurrent {number}"));
        let text = format!(
            "GC threads: parallel {}{concurrent}, on {} CPUs. {}",
            threads.parallel,
            threads.cpus,
            threads.advice.as_deref().unwrap_or("")
        );
        led(out, "  ", &text)?;
    }
    Ok(())
}

fn list(out: &mut dyn Write, title: &str, lines: &[String]) -> io::Result<()> {
    if lines.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{}", title.to_uppercase())?;
    lines.iter().try_for_each(|line| led(out, "  - ", line))
}

fn next(out: &mut dyn Write, plan: &Plan, file: Option<&str>) -> io::Result<()> {
    writeln!(out, "\nNEXT")?;
    let name = file.map_or("plan.json".to_string(), |file| shorten(file, FILE_COLUMNS));
    if file.is_none() {
        writeln!(out, "  keep    -o plan.json")?;
    }
    if plan.outlook.feasible == Feasible::No {
        let what = if plan.boot.is_empty() {
            "see above what would help"
        } else {
            "start the host with the words above"
        };
        return writeln!(out, "  {what}, then plan again");
    }
    if plan.steps.is_empty() && plan.persist.is_empty() {
        writeln!(out, "  start the JVM with the options above")?;
        return pasted(out, "  verify  ", &format!("marusa pages verify PID {name}"));
    }
    pasted(out, "  try     ", &format!("marusa pages apply {name} --dry-run"))?;
    pasted(out, "  apply   ", &format!("marusa pages apply {name}"))?;
    writeln!(out, "  start the JVM with the options above")?;
    pasted(out, "  verify  ", &format!("marusa pages verify PID {name}"))?;
    writeln!(out, "  undo    marusa pages undo")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jvm::Gc;
    use crate::pages::made_up::{host, request};
    use crate::pages::plan::make;
    use crate::pages::request::Request;
    use crate::show::width::within;

    fn shown(vm: Vm, mode: Option<Mode>, gc: Gc, heap: u64) -> String {
        let host = host();
        let plan = make(&Request { mode, ..request(&host, vm, 21, gc, heap) }).expect("a plan");
        let mut out = Vec::new();
        text(&mut out, &plan, None).expect("written");
        String::from_utf8(out).expect("UTF-8")
    }

    #[test]
    fn no_line_is_longer_than_a_screen() {
        for (vm, mode, gc) in [
            (Vm::HotSpot, Some(Mode::HugeTlb2M), Gc::G1),
            (Vm::HotSpot, Some(Mode::HugeTlb1G), Gc::Parallel),
            (Vm::HotSpot, Some(Mode::Thp), Gc::Z),
            (Vm::HotSpot, None, Gc::Serial),
            (Vm::OpenJ9, Some(Mode::HugeTlb2M), Gc::Parallel),
        ] {
            for heap in [512 << 20, 8 << 30] {
                for columns in [100, 80, 60] {
                    let text = within(columns, || shown(vm, mode, gc, heap));
                    for line in text.lines() {
                        assert!(line.chars().count() <= columns, "{columns}: {line}");
                    }
                }
            }
        }
    }

    /// A heap that starts with 256 MiB is the JVM's own choice where only -Xmx was given.
    #[test]
    fn a_running_jvm_is_said_to_have_no_option_that_nobody_gave() {
        let host = host();
        let mut wanted = Request { launch: Vec::new(), ..request(&host, Vm::HotSpot, 21, Gc::G1, 4 << 30) };
        wanted.subject.heap_initial_bytes = 256 << 20;
        let plan = make(&wanted).expect("a plan");
        let mut out = Vec::new();
        within(100, || text(&mut out, &plan, None)).expect("written");
        let text = String::from_utf8(out).expect("UTF-8");
        assert!(!text.contains("-Xms"), "{text}");
        assert!(text.contains("a heap of at most 4.0 GiB that starts with 256"), "{text}");
    }

    #[test]
    fn an_option_that_nobody_gave_is_called_a_recommendation() {
        let host = host();
        let shown = |recommended: &[&str]| {
            let launch = vec!["-Xmx1g".to_string(), "-Xms1g".to_string()];
            let recommended = recommended.iter().map(|one| one.to_string()).collect();
            let wanted = Request { launch, recommended, ..request(&host, Vm::HotSpot, 21, Gc::G1, 1 << 30) };
            let mut out = Vec::new();
            within(100, || text(&mut out, &make(&wanted).expect("a plan"), None)).expect("written");
            String::from_utf8(out).expect("UTF-8")
        };
        assert!(shown(&["-Xms1g"]).contains("-Xms1g was not given and is a recommendation"));
        assert!(!shown(&[]).contains("recommendation"));
    }

    #[test]
    fn the_answer_comes_first() {
        let text = shown(Vm::HotSpot, Some(Mode::HugeTlb2M), Gc::G1, 2 << 30);
        let first: Vec<&str> = text.lines().take(4).collect();
        assert_eq!(first[0], "plan hotspot-21-g1-2g");
        assert!(text.contains("\nnow? YES, "), "{text}");
        assert!(text.contains("nr_hugepages +1164"), "{text}");
        let text = shown(Vm::HotSpot, Some(Mode::HugeTlb2M), Gc::G1, 9 << 30);
        assert!(text.contains("\nnow? NO, ") && text.contains("hugepagesz=2M hugepages="), "{text}");
    }
}
