//! `marusa bench direct-buffers`: the account at each step, freed memory and where it is, and the published figures.

use super::cells::{lines, mib, mib_range};
use super::picture::Picture;
use super::rounds::{Experiment, Nothing, Results, RowOf, machine, named};
use crate::base::{Bytes, counted};
use crate::experiment::bench::account_row::AccountRow;
use crate::experiment::bench::direct_buffers::{
    Arm, ArmFigures, Figures, OFF_MAX, PUBLISHED, Published, Settings, Step, expected_bytes, figures,
};
use crate::experiment::bench::spread::Spread;
use crate::experiment::bench::trials::{Arm as _, ArmRow, OfArm};
use crate::map::Area;
use crate::show::table::Table;
use crate::show::units::{human, prose};
use std::io::{self, Write};

/// The areas of the table; what else there is, is one column.
const COLUMNS: [(&str, &[Area]); 5] = [
    ("JAVA HEAP", &[Area::JavaHeap]),
    ("DIRECT", &[Area::DirectBuffers]),
    ("JVM WORK", &[Area::JvmWork]),
    ("FREED", &[Area::MallocFreed]),
    ("OVERHEAD", &[Area::Overhead]),
];

/// To start, to take and free the buffers, and to come to rest in between.
const SECONDS_EACH: f64 = 10.0;

impl Experiment for Settings {
    named!("direct-buffers", 3, 1, figures);
    type Arm = Arm;
    type Figures = Figures;
    type OfArm = Nothing;
    type Found = Nothing;
    type Summary = ArmFigures;
    type Report = Nothing;
    type Published = Published;
    const PUBLISHED: Published = PUBLISHED;

    fn is_complete(row: &RowOf<Settings>) -> bool {
        row.figures.broken == 0
    }

    fn seconds_each(&self) -> f64 {
        SECONDS_EACH
    }

    fn head(&self) -> [String; 2] {
        let page = if self.page_aligned { " and a page" } else { "" };
        let each = human(self.buffer_bytes);
        let what = format!(
            "{} direct buffers of {each}{page}, taken, freed, trimmed; {}",
            self.buffers, self.options
        );
        let runs = counted(self.rounds, "JVM");
        [what, format!("{}; {runs} of each kind; MiB resident, medians", machine(&self.machine))]
    }

    fn picture(Results { arms, .. }: &Results<Settings>) -> Picture {
        let mut picture = Picture::new("Freed direct buffers that malloc holds", "MiB", Some(0.0));
        let held = PUBLISHED.freed_malloc_growth_mib;
        picture.published("J9 Java 6, 2010", held, &format!("{held} MB"));
        for row in arms {
            picture.spread(row.arm.name(), row.figures.held_bytes.map(Spread::mib));
        }
        picture
    }

    fn tables(out: &mut dyn Write, results: &Results<Settings>) -> io::Result<()> {
        for row in &results.arms {
            writeln!(out, "\n{}", row.arm.name())?;
            let of_columns = COLUMNS.iter().map(|(title, _)| format!(">{title}"));
            let titles = ["STEP", ">RSS"].map(str::to_string).into_iter().chain(of_columns);
            let rest = [">THE REST", ">TRIMMABLE"].map(str::to_string);
            let mut table = Table::new(titles.chain(rest)).indented(2);
            let of = OfArm::among(results.trials, &row.arm);
            Step::ALL.iter().for_each(|step| table.row(at_step(*step, &of)));
            table.write(out)?;
            verdict(out, results.settings, row)?;
        }
        published(out, results.settings)
    }
}

fn at_step(step: Step, of: &OfArm<Arm, Figures>) -> Vec<String> {
    let spread = |figure: &dyn Fn(&AccountRow) -> Option<Bytes>| {
        mib(of.spread(&|figures| Some(figure(figures.at(step)?)? as f64)))
    };
    let mut cells = vec![step.word(), spread(&|account| Some(account.kernel_or_resident_bytes()))];
    cells.extend(COLUMNS.iter().map(|(_, areas)| spread(&|account| account.known_sum(areas))));
    cells.extend([spread(&rest), spread(&|account| account.trimmable_bytes)]);
    cells
}

fn rest(account: &AccountRow) -> Option<Bytes> {
    let shown: Option<Bytes> = COLUMNS.iter().map(|(_, areas)| account.known_sum(areas)).sum();
    Some(account.resident_bytes.saturating_sub(shown?))
}

/// A share that something is off by: "0.12 %".
fn off(share: Option<f64>) -> String {
    share.map_or("?".to_string(), |share| format!("{:.2} %", share * 100.0))
}

fn verdict(
    out: &mut dyn Write,
    settings: &Settings,
    ArmRow { figures: one, counted, .. }: &RowOf<Settings>,
) -> io::Result<()> {
    let mut texts = vec![
        format!(
            "direct buffers against the {} that the program took: off by {} at most",
            human(settings.expected_bytes),
            off(one.direct_off_share_max)
        ),
        format!(
            "freed: {} held as malloc-then-freed, {} returned by itself; together off by {} at most",
            mib_range(one.held_bytes),
            mib_range(one.returned_bytes),
            off(one.freed_off_share_max)
        ),
        match &one.not_trimmed {
            Some(why) => format!("not trimmed: {why}"),
            None => format!("trimming gave {} back", mib_range(one.trimmed_bytes)),
        },
    ];
    if one.surviving_buffers.is_some_and(|left| left.max > 0.0) {
        texts.push("some buffers outlived System.gc()".to_string());
    }
    if one.broken > 0 {
        texts.push(format!("{} of {counted} are off by more than {}", one.broken, off(Some(OFF_MAX))));
    }
    texts.iter().try_for_each(|text| lines(out, text, 2))
}

fn published(out: &mut dyn Write, settings: &Settings) -> io::Result<()> {
    let Published { jvm_work_mib, buffers_mib, freed_jvm_work_growth_mib, freed_malloc_growth_mib } =
        PUBLISHED;
    let text = format!(
        "\npublished (OOPSLA 2010; 10,000 x 32 KB, heap 8 MB, 32-bit J9 Java 6, x86): JVM work {jvm_work_mib} MB, of it \
         buffers {buffers_mib}; after freeing and System.gc() JVM work {freed_jvm_work_growth_mib} and malloc-then-freed \
         +{freed_malloc_growth_mib}. Before JDK 7 a buffer took a page more than its bytes: 10,000 x 36 KiB are {} MiB{}",
        expected_bytes(10_000, 32 << 10, true) as f64 / 1048576.0,
        if settings.page_aligned { "" } else { " (--page-aligned measures that)" }
    );
    prose(out, &text)
}
