//! `marusa bench reflection`: the account by number of calls, JDK and way of calling, and the published figures.

use super::cells::{lines, median, mib};
use super::picture::Picture;
use super::rounds::{Experiment, Nothing, Results, RowOf, machine, named};
use crate::base::counted;
use crate::experiment::bench::reflection::{
    Arm, ArmFigures, COLUMNS, Figures, PUBLISHED, PUBLISHED_MORE, PUBLISHED_MORE_SHARE, Published, Settings,
    figures, more,
};
use crate::experiment::bench::spread::Spread;
use crate::experiment::bench::trials::{Arm as _, ArmRow, OfArm};
use crate::show::table::Table;
use crate::show::units::prose;
use std::io::{self, Write};

/// To make the classes, to call all accessors and to come to rest.
const SECONDS_EACH: f64 = 15.0;

impl Experiment for Settings {
    named!("reflection", 3, 1, figures);
    type Arm = Arm;
    type Figures = Figures;
    type OfArm = Nothing;
    type Found = Nothing;
    type Summary = ArmFigures;
    type Report = Nothing;
    type Published = [Published; 3];
    const PUBLISHED: [Published; 3] = PUBLISHED;

    fn seconds_each(&self) -> f64 {
        SECONDS_EACH
    }

    fn head(&self) -> [String; 2] {
        let Settings { fields, classes, options, .. } = self;
        let what = format!(
            "the getters and setters of {fields} fields in {classes} classes, by Method.invoke; {options}"
        );
        let runs = counted(self.rounds, "JVM");
        [what, format!("{}; {runs} of each kind; MiB resident, medians", machine(&self.machine))]
    }

    fn picture(Results { arms, .. }: &Results<Settings>) -> Picture {
        let title = "Class metadata and JIT code, by calls of each accessor";
        let mut picture = Picture::new(title, "MiB", Some(0.0));
        for Published { calls, class_metadata_mib, jit_code_mib } in PUBLISHED {
            let sum = class_metadata_mib + jit_code_mib;
            picture.published(format!("{calls} calls, 2010"), sum, &format!("{sum:.1} MB"));
        }
        for row in arms {
            picture.spread(row.arm.name(), row.figures.published_sum_bytes.map(Spread::mib));
        }
        picture
    }

    fn tables(out: &mut dyn Write, results: &Results<Settings>) -> io::Result<()> {
        let is_alike = |one: &RowOf<Settings>, other: &RowOf<Settings>| {
            (&one.arm.jdk, one.arm.accessors) == (&other.arm.jdk, other.arm.accessors)
        };
        results.arms.chunk_by(is_alike).try_for_each(|arms| table(out, arms))?;
        published(out)
    }
}

/// Of a JDK and a kind of accessors.
fn table(out: &mut dyn Write, arms: &[RowOf<Settings>]) -> io::Result<()> {
    let [few, ..] = arms else { return Ok(()) };
    writeln!(out, "\nJDK {}, {}", few.arm.jdk, few.figures.does)?;
    let of_columns = COLUMNS.iter().map(|column| format!(">{}", column.title));
    let titles = [">CALLS", ">CLASSES"].map(str::to_string).into_iter().chain(of_columns);
    let rest = [">REST", ">JAVA HEAP", ">RSS", ">TIME ms"].map(str::to_string);
    let mut table = Table::new(titles.chain(rest)).indented(2);
    for ArmRow { arm, figures: one, .. } in arms {
        let mut cells = vec![arm.calls.to_string(), median(one.classes)];
        cells.extend(COLUMNS.iter().map(|column| mib(one.areas[&column.bytes_key()])));
        cells.extend([one.rest_bytes, one.java_heap_bytes, one.resident_bytes].map(mib));
        cells.push(median(one.call_ms));
        table.row(cells);
    }
    table.write(out)?;
    if let [few, .., many] = arms
        && few.arm.calls < many.arm.calls
        && let Some((bytes, share)) = more(&few.figures, &many.figures)
    {
        let text = format!(
            "{} calls take {:.1} MiB more than {} in metadata and JIT code: {:.0} % of all but the Java heap",
            many.arm.calls,
            bytes / 1048576.0,
            few.arm.calls,
            share * 100.0
        );
        lines(out, &text, 2)?;
    }
    match arms.iter().map(|one| one.figures.unsettled).sum::<usize>() {
        0 => Ok(()),
        count => lines(out, &format!("{count} JVMs were looked at before their compilers were idle"), 2),
    }
}

fn published(out: &mut dyn Write) -> io::Result<()> {
    prose(out, "\npublished (OOPSLA 2010; 6,000 fields, 32-bit J9 Java 6, x86; MB)")?;
    let mut table = Table::new([">CALLS", ">METADATA", ">JIT CODE"]).indented(2);
    for Published { calls, class_metadata_mib: metadata, jit_code_mib: code } in PUBLISHED {
        table.row([calls.to_string(), format!("{metadata:.1}"), format!("{code:.1}")]);
    }
    table.write(out)?;
    let share = PUBLISHED_MORE_SHARE * 100.0;
    let text = format!("2000 calls took {PUBLISHED_MORE} MB more than 10, {share:.0} % of all memory in use");
    lines(out, &text, 2)
}
