//! `marusa bench reflection`: the account by number of calls, JDK and way of calling, and the published figures.

use super::figures::{gaps, lines, mib, plain};
use crate::experiment::bench::reflection::{
    COLUMNS, PUBLISHED, PUBLISHED_MORE, PUBLISHED_MORE_SHARE, Point, Published, more,
};
use crate::experiment::bench::spread::Spread;
use crate::map::model::GapRow;
use crate::show::json::Head;
use crate::show::table::Table;
use crate::show::units::{counted, indented, paragraph, prose};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// What was asked for, and where.
#[derive(JsonSchema, Serialize)]
pub struct Setup {
    pub machine: String,
    pub options: String,
    pub fields: u32,
    pub classes: u32,
    #[serde(skip)]
    pub runs: u64,
}

fn head(out: &mut dyn Write, setup: &Setup) -> io::Result<()> {
    let (fields, classes) = (setup.fields, setup.classes);
    lines(
        out,
        &format!(
            "the getters and setters of {fields} fields in {classes} classes, by Method.invoke; {}",
            setup.options
        ),
    )?;
    lines(
        out,
        &format!("{}; {} of each kind; MiB resident, medians", setup.machine, counted(setup.runs, "JVM")),
    )?;
    writeln!(out)
}

pub fn dry_run(out: &mut dyn Write, setup: &Setup, points: &[Point]) -> io::Result<()> {
    head(out, setup)?;
    prose(out, "dry run: nothing was started. It would be:")?;
    for point in points {
        let options = point.accessors.options(point.feature).unwrap_or_default().join(" ");
        indented(out, &format!("JDK {}, {} calls {options}", point.jdk, point.calls), 2)?;
    }
    Ok(())
}

pub fn text(out: &mut dyn Write, setup: &Setup, points: &[Point], ended: Option<&str>) -> io::Result<()> {
    head(out, setup)?;
    for points in kinds(points) {
        let Some(first) = points.first() else { continue };
        writeln!(out, "JDK {}, {}", first.jdk, first.accessors.story(first.feature))?;
        let of_columns = COLUMNS.iter().map(|column| match column.key {
            "class_metadata" => ">METADATA".to_string(),
            _ => format!(">{}", column.title),
        });
        let titles = [">CALLS", ">CLASSES"].map(str::to_string).into_iter().chain(of_columns);
        let rest = [">REST", ">JAVA HEAP", ">RSS", ">TIME ms"].map(str::to_string);
        let mut table = Table::new(titles.chain(rest)).indented(2);
        points.iter().for_each(|point| table.row(row(point)));
        table.write(out)?;
        if let (Some(few), Some(many)) = (points.first(), points.last())
            && few.calls < many.calls
            && let Some((bytes, share)) = more(few, many)
        {
            indented(
                out,
                &format!(
                    "{} calls take {:.1} MiB more than {} in metadata and JIT code: {:.0} % of all but the Java heap",
                    many.calls,
                    bytes / 1048576.0,
                    few.calls,
                    share * 100.0
                ),
                2,
            )?;
        }
        let unsettled: usize = points.iter().map(|point| point.unsettled()).sum();
        if unsettled > 0 {
            indented(out, &format!("{unsettled} JVMs were looked at before their compilers were idle"), 2)?;
        }
        writeln!(out)?;
    }
    published(out)?;
    ended.map_or(Ok(()), |why| writeln!(out, "\nnot complete: {why}"))
}

/// By JDK and accessors.
fn kinds(points: &[Point]) -> Vec<Vec<&Point>> {
    let mut kinds: Vec<Vec<&Point>> = Vec::new();
    for point in points {
        let same = |kind: &&mut Vec<&Point>| {
            kind.first().is_some_and(|one| one.jdk == point.jdk && one.accessors == point.accessors)
        };
        match kinds.iter_mut().find(same) {
            Some(kind) => kind.push(point),
            None => kinds.push(vec![point]),
        }
    }
    kinds
}

fn row(point: &Point) -> Vec<String> {
    let mut cells = vec![point.calls.to_string(), plain(point.classes(), 0)];
    cells.extend(COLUMNS.iter().map(|column| mib(point.column(column))));
    cells.extend([point.rest(), point.java_heap(), point.total()].map(mib));
    cells.push(plain(point.call_ms(), 0));
    cells
}

fn published(out: &mut dyn Write) -> io::Result<()> {
    prose(out, "published (OOPSLA 2010; 6,000 fields, 32-bit J9 Java 6, x86; MB)")?;
    let mut table = Table::new([">CALLS", ">METADATA", ">JIT CODE"]).indented(2);
    for Published { calls, class_metadata_mib: metadata, jit_code_mib: code } in PUBLISHED {
        table.row([calls.to_string(), format!("{metadata:.1}"), format!("{code:.1}")]);
    }
    table.write(out)?;
    let text = format!(
        "2000 calls took {PUBLISHED_MORE} MB more than 10, {:.0} % of all memory in use",
        PUBLISHED_MORE_SHARE * 100.0
    );
    paragraph(out, "  ", "  ", &text)
}

/// `marusa bench reflection --json`.
#[derive(JsonSchema, Serialize)]
pub struct BenchReflectionDocument<'a> {
    #[serde(flatten)]
    head: Head,
    #[serde(flatten)]
    setup: &'a Setup,
    published: [Published; 3],
    points: Vec<PointRow<'a>>,
    ended: Option<&'a str>,
    gaps: Vec<&'a GapRow>,
}

#[derive(JsonSchema, Serialize)]
struct PointRow<'a> {
    #[serde(flatten)]
    point: &'a Point,
    does: &'static str,
    options: Option<Vec<String>>,
    classes: Option<Spread>,
    resident_bytes: Option<Spread>,
    call_ms: Option<Spread>,
    /// By "jit_code_bytes": those of some areas, of the Java heap, and of the rest.
    #[serde(flatten)]
    areas: BTreeMap<String, Option<Spread>>,
}

impl<'a> BenchReflectionDocument<'a> {
    pub fn of(setup: &'a Setup, points: &'a [Point], ended: Option<&'a str>) -> BenchReflectionDocument<'a> {
        let samples = points.iter().flat_map(|point| &point.samples);
        BenchReflectionDocument {
            head: Head::now("marusa/bench-reflection/2"),
            setup,
            published: PUBLISHED,
            points: points.iter().map(PointRow::of).collect(),
            ended,
            gaps: gaps(samples.flat_map(|sample| [&sample.loaded, &sample.called])),
        }
    }
}

impl PointRow<'_> {
    fn of(point: &Point) -> PointRow<'_> {
        let areas = COLUMNS.iter().map(|column| (column.key, point.column(column)));
        let others = [("rest", point.rest()), ("java_heap", point.java_heap())];
        PointRow {
            point,
            does: point.accessors.story(point.feature),
            options: point.accessors.options(point.feature),
            classes: point.classes(),
            resident_bytes: point.total(),
            call_ms: point.call_ms(),
            areas: areas.chain(others).map(|(key, bytes)| (format!("{key}_bytes"), bytes)).collect(),
        }
    }
}
