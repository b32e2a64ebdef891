//! `marusa bench reflection`: getters and setters of many fields called through java.lang.reflect.Method, and what the paper of
//! 2010 published.

use super::account_row::{self, AccountRow};
use super::spread::Spread;
use crate::base::Bytes;
use crate::map::Account;
use crate::map::Area;
use schemars::JsonSchema;
use serde::Serialize;

/// Calls of each accessor, and what they took: J9 Java 6 on x86, 6,000 fields.
#[derive(Clone, Copy, Debug, JsonSchema, Serialize)]
pub struct Published {
    pub calls: u64,
    pub class_metadata_mib: f64,
    pub jit_code_mib: f64,
}

pub const PUBLISHED: [Published; 3] = [
    Published { calls: 10, class_metadata_mib: 3.9, jit_code_mib: 0.8 },
    Published { calls: 100, class_metadata_mib: 21.8, jit_code_mib: 0.8 },
    Published { calls: 2000, class_metadata_mib: 21.8, jit_code_mib: 12.3 },
];
/// What 2,000 calls took more than 10 in MiB, and as a share of all memory in use.
pub const PUBLISHED_MORE: f64 = 29.2;
pub const PUBLISHED_MORE_SHARE: f64 = 0.43;

/// By what Method.invoke gets to the method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Accessors {
    /// As the JDK does it by default.
    Default,
    /// Always through native code: no class is ever generated.
    Native,
    /// JDK 18 to 21 in the way of 17: generated classes.
    Generated,
}

impl Accessors {
    pub const ALL: [Accessors; 3] = [Accessors::Default, Accessors::Native, Accessors::Generated];

    pub fn word(self) -> &'static str {
        match self {
            Accessors::Default => "default",
            Accessors::Native => "native",
            Accessors::Generated => "generated",
        }
    }

    /// The option for it; `None`: this JDK does not have it. JEP 416 (JDK 18) put method handles in the place of generated
    /// classes; JDK 22 removed the way back (JDK-8305104).
    pub fn options(self, feature: u32) -> Option<Vec<String>> {
        let options = |text: &str| Some(vec![text.to_string()]);
        match (self, feature) {
            (Accessors::Default, _) => Some(Vec::new()),
            (Accessors::Native, ..18) => options("-Dsun.reflect.inflationThreshold=2147483647"),
            (Accessors::Native, _) => options("-Djdk.reflect.useNativeAccessorOnly=true"),
            (Accessors::Generated, 18..=21) => options("-Djdk.reflect.useDirectMethodHandle=false"),
            (Accessors::Generated, _) => None,
        }
    }

    /// What the JDK does, for people.
    pub fn story(self, feature: u32) -> &'static str {
        match (self, feature) {
            (Accessors::Default, ..18) => "native for 15 calls, then a generated class for each method",
            (Accessors::Default, _) => "method handles",
            (Accessors::Native, _) => "native code only",
            (Accessors::Generated, _) => "as up to 17: native for 15 calls, then generated classes",
        }
    }
}

/// One JVM.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Sample {
    /// Classes and Method objects are there, nothing was called.
    #[serde(serialize_with = "account_row::serialize")]
    #[schemars(with = "AccountRow")]
    pub loaded: Account,
    #[serde(serialize_with = "account_row::serialize")]
    #[schemars(with = "AccountRow")]
    pub called: Account,
    pub call_ms: Option<u64>,
    /// The compilers had come to rest when it was looked at.
    pub at_rest: bool,
}

/// The JVMs of one JDK, one kind of accessors and one number of calls.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Point {
    pub jdk: String,
    #[serde(skip)]
    pub feature: u32,
    pub accessors: Accessors,
    pub calls: u64,
    pub samples: Vec<Sample>,
}

/// A column: what is resident in some areas together.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    pub key: &'static str,
    pub title: &'static str,
    pub areas: &'static [Area],
}

/// The areas that the experiment is about; what else there is, is "the rest".
pub const COLUMNS: [Column; 5] = [
    Column { key: "class_metadata", title: "CLASSES", areas: &[Area::ClassMetadata] },
    Column { key: "jit_code", title: "JIT CODE", areas: &[Area::JitCode] },
    Column { key: "jit_work", title: "JIT WORK", areas: &[Area::JitWork] },
    Column { key: "jvm_work", title: "JVM WORK", areas: &[Area::JvmWork] },
    Column { key: "malloc_freed", title: "FREED", areas: &[Area::MallocFreed] },
];

impl Point {
    fn spread(&self, of: impl Fn(&Sample) -> Option<f64>) -> Option<Spread> {
        Spread::of(self.samples.iter().map(of))
    }

    pub fn column(&self, column: &Column) -> Option<Spread> {
        self.spread(|sample| sample.called.known_sum(column.areas).map(|bytes| bytes as f64))
    }

    /// What is resident, without the Java heap and without what the columns have.
    pub fn rest(&self) -> Option<Spread> {
        self.spread(|sample| {
            let columns: Option<Bytes> = COLUMNS.iter().map(|one| sample.called.known_sum(one.areas)).sum();
            let heap = sample.called.resident_bytes_of(Area::JavaHeap);
            Some(sample.called.totals.resident_bytes.saturating_sub(columns?).saturating_sub(heap) as f64)
        })
    }

    pub fn java_heap(&self) -> Option<Spread> {
        self.spread(|sample| Some(sample.called.resident_bytes_of(Area::JavaHeap) as f64))
    }
    pub fn total(&self) -> Option<Spread> {
        self.spread(|sample| Some(sample.called.totals.resident_bytes as f64))
    }
    pub fn classes(&self) -> Option<Spread> {
        self.spread(|sample| sample.called.classes().map(|classes| classes as f64))
    }
    pub fn call_ms(&self) -> Option<Spread> {
        self.spread(|sample| sample.call_ms.map(|ms| ms as f64))
    }

    /// Class metadata and JIT code together: what the paper sums.
    pub fn published_sum(&self) -> Option<f64> {
        let sum = |sample: &Sample| {
            sample.called.known_sum(&[Area::ClassMetadata, Area::JitCode]).map(|bytes| bytes as f64)
        };
        self.spread(sample_of(sum)).map(|spread| spread.median)
    }

    pub fn unsettled(&self) -> usize {
        self.samples.iter().filter(|sample| !sample.at_rest).count()
    }
}

/// Names the type of the closure.
fn sample_of<F: Fn(&Sample) -> Option<f64>>(of: F) -> F {
    of
}

/// What the most calls take more than the fewest, in class metadata and JIT code: bytes, and as a share of all that is resident
/// next to the Java heap.
pub fn more(few: &Point, many: &Point) -> Option<(f64, f64)> {
    let more = many.published_sum()? - few.published_sum()?;
    let beside_heap = many.total()?.median - many.java_heap()?.median;
    (beside_heap > 0.0).then_some((more, more / beside_heap))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(calls: u64, classes: Bytes, code: Bytes) -> Point {
        let account = Account::made_up(&[
            (Area::ClassMetadata, classes),
            (Area::JitCode, code),
            (Area::JitWork, 1),
            (Area::JvmWork, 2),
            (Area::MallocFreed, 3),
            (Area::JavaHeap, 100),
            (Area::Stack, 4),
        ]);
        let sample = Sample { loaded: account.clone(), called: account, call_ms: Some(7), at_rest: true };
        Point { jdk: "17".into(), feature: 17, accessors: Accessors::Default, calls, samples: vec![sample] }
    }

    #[test]
    fn what_many_calls_take_more_than_few() {
        let (few, many) = (point(10, 10, 1), point(2000, 30, 21));
        assert_eq!(many.rest().map(|spread| spread.median), Some(4.0));
        assert_eq!(more(&few, &many), Some((40.0, 40.0 / 61.0)));
        let unknown = Point { samples: Vec::new(), ..point(1, 1, 1) };
        assert_eq!(more(&unknown, &many), None);
    }

    #[test]
    fn each_jdk_has_its_own_option() {
        assert!(Accessors::Native.options(17).is_some_and(|one| one[0].contains("inflationThreshold")));
        assert!(Accessors::Native.options(25).is_some_and(|one| one[0].contains("useNativeAccessorOnly")));
        assert!(Accessors::Generated.options(21).is_some());
        assert_eq!(Accessors::Generated.options(17), None);
        assert_eq!(Accessors::Generated.options(25), None);
        assert_eq!(Accessors::Default.options(8), Some(Vec::new()));
    }
}
