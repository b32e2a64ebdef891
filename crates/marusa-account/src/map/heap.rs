//! The objects of the Java heap as every face shows them, serialised as `marusa/heap/1`.

use super::model::{GapRow, Jvm, Process, Taken};
use super::rows::{Measure, Named, Row, Subject};
use crate::base::{Gap, Why};
use crate::jvm::{ClassObjects, Duplicates, HeapBytes, Histogram, SpaceObjects};
use crate::os::host::Host;
use crate::snapshot::{Snapshot, Source};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub const SCHEMA: &str = "marusa/heap/1";
/// The classes that a recording does not keep, as one. No class has such a name.
pub const OTHER_CLASSES: &str = "<other classes>";

/// How the names of classes begin that are not the program's own.
const OF_JDK: [&str; 7] = ["java.", "javax.", "jdk.", "sun.", "com.sun.", "[", OTHER_CLASSES];

/// Whether a class is the program's own, or a library's. Its objects are small next to the arrays and nodes that they hold.
pub fn is_of_program(class: &str) -> bool {
    !OF_JDK.iter().any(|start| class.starts_with(start))
}

/// What is in the heap. What is not known is `None`, with an entry in `gaps`; never 0.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct HeapObjects {
    pub schema: String,
    pub taken: Taken,
    pub host: Option<Host>,
    pub process: Process,
    pub jvm: Option<Jvm>,
    /// `None`: the heap could not be read.
    pub totals: Option<HeapTotals>,
    /// The largest first; those of one name are one.
    pub classes: Vec<ClassObjects>,
    /// The number of `classes` that were left out.
    pub more_classes: u64,
    /// The kinds of the heap's regions, the largest first.
    pub spaces: Vec<SpaceObjects>,
    /// Where it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duplicates: Option<Duplicates>,
    pub gaps: Vec<GapRow>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct HeapTotals {
    pub instances: u64,
    pub classes: u64,
    /// All that the spaces have in use is in one of these sums.
    #[serde(flatten)]
    pub bytes: HeapBytes,
    /// The part of what is in use whose class is known and that did not change while it was read.
    pub exact_ratio: Option<f64>,
    /// How often the heap was looked at until its regions stood still.
    pub looks: u32,
}

/// A document of `marusa heap --json`; `None`: it is another one.
pub fn parse(text: &[u8]) -> Option<Result<HeapObjects, serde_json::Error>> {
    #[derive(Deserialize)]
    struct Format {
        schema: String,
    }
    let format: Format = serde_json::from_slice(text).ok()?;
    (format.schema == SCHEMA).then(|| serde_json::from_slice(text))
}

/// The classes as they are recorded and compared.
pub fn rows(classes: &[ClassObjects]) -> Vec<Row> {
    let figures = |row: &ClassObjects| {
        let of = |measure, value| (Subject::Named(Named::Class, row.class.clone()), measure, value);
        [
            of(Measure::InUse, Some(row.bytes)),
            of(Measure::Instances, Some(row.instances)),
            of(Measure::SurvivedBytes, row.survived_bytes),
            of(Measure::SurvivedInstances, row.survived_instances),
        ]
    };
    classes.iter().flat_map(figures).collect()
}

impl HeapObjects {
    /// With the `top` largest classes.
    pub fn of(snapshot: &Snapshot, top: Option<usize>) -> HeapObjects {
        let jvm = snapshot.jvm.as_ref();
        let unread = || Gap::new("objects of the heap", Why::NotRead);
        let found =
            jvm.map_err(Gap::clone).and_then(|jvm| jvm.histogram.clone().unwrap_or_else(|| Err(unread())));
        let mut account = HeapObjects {
            schema: SCHEMA.to_string(),
            taken: Taken::of(snapshot),
            host: snapshot.taken.host.clone(),
            process: Process::of(snapshot),
            jvm: jvm.ok().map(Jvm::of),
            ..HeapObjects::default()
        };
        match found {
            Ok(found) => account.take(found, top),
            Err(gap) => account.gaps.push(GapRow::from(&gap)),
        }
        account.note_page_sizes(snapshot);
        account
    }

    fn note_page_sizes(&mut self, snapshot: &Snapshot) {
        let gaps = match &snapshot.os.page_sizes {
            _ if snapshot.taken.source == Source::Core => {
                self.classes.iter_mut().for_each(|class| class.by_page_size = None);
                let hint = "a core does not say on which pages its bytes were";
                vec![Gap::new("classes.by_page_size", Why::NotRecorded).hint(hint)]
            }
            Some(Ok(sizes)) if sizes.is_estimated() => {
                let hint = "folios of a sample of the pages were looked at";
                [
                    vec![Gap::new("classes.by_page_size is estimated", Why::NotRead).hint(hint)],
                    sizes.gaps.clone(),
                ]
                .concat()
            }
            Some(Ok(sizes)) => sizes.gaps.clone(),
            Some(Err(gap)) => vec![gap.clone()],
            None => snapshot.os.pages.as_ref().err().cloned().into_iter().collect(),
        };
        self.gaps.extend(gaps.iter().map(GapRow::from));
    }

    fn take(&mut self, found: Histogram, top: Option<usize>) {
        let mut bytes = HeapBytes::default();
        found.spaces.iter().for_each(|space| bytes.add(&space.bytes));
        let known = bytes.object_bytes.saturating_add(bytes.dead_bytes);
        let still = known.saturating_sub(bytes.changed_bytes);
        let exact = still.saturating_add(bytes.idle_bytes());
        self.totals = Some(HeapTotals {
            instances: found.spaces.iter().map(|space| space.instances).sum(),
            classes: found.classes.len() as u64,
            bytes,
            exact_ratio: (bytes.used_bytes > 0).then(|| exact as f64 / bytes.used_bytes as f64),
            looks: found.looks,
        });
        self.classes = found.classes;
        if let Some(top) = top.filter(|top| *top < self.classes.len()) {
            self.more_classes = (self.classes.len() - top) as u64;
            self.classes.truncate(top);
        }
        self.spaces = found.spaces;
        self.duplicates = found.duplicates;
        self.gaps.extend(found.gaps.iter().map(GapRow::from));
    }
}
