use super::*;
use crate::base::Gap;
use crate::base::Why;
use crate::experiment::arm_pages::{PageMode, Verified};
use crate::experiment::arms::{Arm, Placed};
use crate::experiment::compare_result::{self, Ask, WarmUp};
use crate::experiment::resume::{self, Head, HostFacts};
use crate::experiment::trial_record::{self, AreaBytes, ResidentAreas, Trial, Unit, all_figures};
use crate::map::Area;
use crate::show::compare::{ArmDesign, Design};

const BLOCKS: usize = 12;

fn head(names: &[&str]) -> Head {
    let arm = |name: &&str| Arm {
        name: name.to_string(),
        environment: Vec::new(),
        options: vec!["-XX:+UseLargePages".into()],
    };
    Head {
        schema: resume::SCHEMA.to_string(),
        made_at: "2026-01-01T10:00:00Z".to_string(),
        made_by: "marusa 0.1.0".to_string(),
        arms: names.iter().map(arm).collect(),
        command: ["java", "-jar", "app.jar", "<script>alert(1)</script>"].map(String::from).to_vec(),
        directory: "/srv".to_string(),
        jvms: vec!["17.0.15+6 of /usr/lib/jvm/java-17".to_string(); names.len()],
        host: HostFacts {
            machine: "x86_64".into(),
            kernel: "6.12.1".into(),
            memory_bytes: 24 << 30,
            cpus: 2,
            thp: "madvise".into(),
        },
        pages: String::new(),
        metrics: Vec::new(),
        environment: Vec::new(),
        seed: 7,
        marks: None,
    }
}

/// Arms of which the second is 6 % faster, the third as fast as the first, and one run of the third did not get its pages.
fn trials(names: &[&str]) -> Vec<Trial> {
    let mut random = fastrand::Rng::with_seed(3);
    let mut all = Vec::new();
    for block in 1..=BLOCKS {
        for (index, name) in names.iter().enumerate() {
            let mut trial = Trial::new(
                all.len() + 1,
                block,
                name,
                format!("2026-01-01T10:{block:02}:{:02}Z", index * 20),
            );
            let noise = 1.0 + 0.03 * (random.f64() - 0.5) + if block == 1 { 0.2 } else { 0.0 };
            let faster = [1.0, 0.94, 1.0][index % 3];
            let seconds = 9.8 * noise * faster * (1.0 + 0.004 * block as f64);
            trial.figures.insert(trial_record::WALL.into(), seconds);
            trial.figures.insert(trial_record::CPU.into(), seconds * 1.6);
            trial.figures.insert(trial_record::USER.into(), seconds * 1.5);
            trial
                .figures
                .insert(trial_record::PEAK_RESIDENT.into(), (400.0 + 40.0 * index as f64) * 1_048_576.0);
            trial.figures.insert(trial_record::GC_PAUSE_TIME.into(), 300.0 * noise * faster);
            let rate = trial_record::Figure::own("rate", Some("op/s"), false);
            trial.own_figure(rate, 12_000.0 / seconds);
            let areas = [
                (Area::JavaHeap, 300 << 20),
                (Area::ClassMetadata, 40 << 20),
                (Area::JitCode, 20 << 20),
                (Area::Stack, 1 << 20),
            ];
            let areas = areas.map(|(area, resident_bytes)| AreaBytes { area, resident_bytes }).to_vec();
            trial.account_end = Some(ResidentAreas { at_ms: 9000, resident_bytes: 361 << 20, areas });
            let met = !(index == 2 && block == 5);
            let text = if met { "2M hugetlb 100.0 %" } else { "4K 100.0 %" }.to_string();
            let why = (!met).then(|| "the pool had 12 of 256 pages & no more".to_string());
            trial.heap_pages = Some(Verified {
                mode: PageMode::AsIs,
                heap_resident_bytes: 1,
                heap_wanted_bytes: 1,
                text,
                met,
                why: why.clone(),
            });
            trial.left_out = why.filter(|_| !met).map(|why| format!("not on the pages of its arm: {why}"));
            if block == 3 {
                trial.gaps.push(Gap::new("dTLB counters", Why::Denied).hint("needs CAP_PERFMON"));
            }
            all.push(trial);
        }
    }
    all
}

fn made_up(names: &[&str]) -> Result {
    let trials = trials(names);
    let arms: Vec<String> = names.iter().map(|name| name.to_string()).collect();
    let figures = all_figures(&trials);
    let ask = Ask {
        arms: &arms,
        figures: &figures,
        about: trial_record::WALL,
        warm_up: WarmUp::Found,
        alpha: 0.05,
        worth_percent: 2.0,
    };
    let comparison = compare_result::compare(&trials, &ask);
    let arm = |name: &&str| ArmDesign {
        name: name.to_string(),
        text: "-XX:+UseLargePages".to_string(),
        command: ["java", "-XX:+UseLargePages", "-jar", "app.jar"].map(String::from).to_vec(),
        placed: Placed::BeforeProgram,
        jvm: "17.0.15+6 of /usr/lib/jvm/java-17".to_string(),
        mode: PageMode::AsIs,
        steps: Vec::new(),
    };
    let design = Design {
        head: head(names),
        arms: names.iter().map(arm).collect(),
        blocks_max: BLOCKS,
        until_margin_percent: None,
        worth_percent: 2.0,
        time_limit_seconds: 600.0,
        first_blocks: Vec::new(),
        resumed: 0,
    };
    Result {
        design,
        comparison,
        trials,
        early: None,
        given_up: Vec::new(),
        saved: Some("/tmp/<run>".to_string()),
    }
}

/// Tags are closed in the order in which they were opened, but the ones that have no end.
fn is_well_formed(page: &str) {
    let body = page.split_once("<body>").expect("a body").1;
    let mut open = Vec::new();
    for tag in body.split('<').skip(1) {
        let tag = tag.split_once('>').unwrap_or_else(|| panic!("'<{tag}' is not closed")).0;
        let name = tag.trim_start_matches('/').split([' ', '/']).next().unwrap_or_default();
        match (tag.starts_with('/'), tag.ends_with('/') || name == "br") {
            (true, _) if name == "body" || name == "html" => {}
            (true, _) => assert_eq!(open.pop(), Some(name), "</{name}>"),
            (false, false) => open.push(name),
            _ => {}
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn the_page_says_what_was_found_and_needs_nothing_else() {
    let page = page(&made_up(&["base", "huge", "same"]));
    is_well_formed(&page);
    assert!(
        !page.contains("<script")
            && !page.contains("http://")
            && !page.contains("https://")
            && !page.contains("NaN")
    );
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
    assert!(
        page.contains("<li class=\"better\"><b class=\"arm\">huge</b> <span><b class=\"word\">better</b>: "),
        "the verdict"
    );
    assert!(page.contains("no difference in wall time shown"));
    assert!(
        page.contains(
            "does not count: not on the pages of its arm: the pool had 12 of 256 pages &amp; no more"
        )
    );
    assert!(page.contains("warm-up") && page.contains("needs CAP_PERFMON") && page.contains("seed 7"));
    // Every run that counts and has the figure is a dot in the plot of all runs and one in that of their order.
    let dots = page.matches("<title>run ").count();
    assert!(dots > 3 * 10 * 4, "{dots}");
}

#[test]
fn a_comparison_of_nothing_is_a_page_too() {
    let mut result = made_up(&["base", "huge"]);
    result.trials.clear();
    let arms = ["base".to_string(), "huge".to_string()];
    let ask = Ask {
        arms: &arms,
        figures: &[],
        about: trial_record::WALL,
        warm_up: WarmUp::Found,
        alpha: 0.05,
        worth_percent: 2.0,
    };
    result.comparison = compare_result::compare(&[], &ask);
    result.early = Some("ended by Ctrl-C".to_string());
    is_well_formed(&page(&result));
}

#[test]
fn arms_of_odd_units_and_many_of_them() {
    let names: Vec<String> = (0..12).map(|index| format!("arm {index} with a long name & <odd>")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut result = made_up(&names);
    for row in &mut result.comparison.rows {
        row.figure.unit = Unit::Own("\"odd\"/<s>".to_string());
    }
    is_well_formed(&page(&result));
}
