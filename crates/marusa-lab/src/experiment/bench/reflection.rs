//! `marusa bench reflection`: getters and setters of many fields called through java.lang.reflect.Method, and what the paper of
//! 2010 published.

use super::Machine;
use super::account_row::AccountRow;
use super::spread::Spread;
use super::trials::{self, OfArm};
use crate::base::{Bytes, counted, word_of};
use crate::map::Area;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

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
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
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

    pub fn word(self) -> String {
        word_of(&self)
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

/// What was asked for, and where.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Settings {
    pub machine: Machine,
    pub options: String,
    pub fields: u32,
    pub classes: u32,
    pub rounds: usize,
    pub seed: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Arm {
    pub jdk: String,
    /// The release.
    pub feature: u32,
    pub accessors: Accessors,
    /// Of each accessor.
    pub calls: u64,
}

impl trials::Arm for Arm {
    fn name(&self) -> String {
        format!("JDK {}, {}, {}", self.jdk, self.accessors.word(), counted(self.calls, "call"))
    }
}

/// One JVM.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Figures {
    /// Classes and Method objects are there, nothing was called.
    pub loaded: Option<AccountRow>,
    pub called: Option<AccountRow>,
    pub call_ms: Option<u64>,
    /// The compilers had come to rest when it was looked at.
    pub at_rest: bool,
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
    Column { key: "class_metadata", title: "METADATA", areas: &[Area::ClassMetadata] },
    Column { key: "jit_code", title: "JIT CODE", areas: &[Area::JitCode] },
    Column { key: "jit_work", title: "JIT WORK", areas: &[Area::JitWork] },
    Column { key: "jvm_work", title: "JVM WORK", areas: &[Area::JvmWork] },
    Column { key: "malloc_freed", title: "FREED", areas: &[Area::MallocFreed] },
];

/// The JVMs of one JDK, one kind of accessors and one number of calls.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct ArmFigures {
    pub does: &'static str,
    pub options: Option<Vec<String>>,
    /// JVMs that were looked at before their compilers were idle.
    pub unsettled: usize,
    pub classes: Option<Spread>,
    pub resident_bytes: Option<Spread>,
    pub call_ms: Option<Spread>,
    pub java_heap_bytes: Option<Spread>,
    /// What is resident, without the Java heap and without what the columns have.
    pub rest_bytes: Option<Spread>,
    /// Class metadata and JIT code together: what the paper sums.
    pub published_sum_bytes: Option<Spread>,
    /// By "jit_code_bytes": those of some areas.
    #[serde(flatten)]
    pub areas: BTreeMap<String, Option<Spread>>,
}

impl Column {
    pub fn bytes_key(&self) -> String {
        format!("{}_bytes", self.key)
    }
}

pub fn figures(of: &OfArm<Arm, Figures>) -> ArmFigures {
    let bytes = |of_called: &dyn Fn(&AccountRow) -> Option<u64>| {
        of.spread(&|figures: &Figures| Some(of_called(figures.called.as_ref()?)? as f64))
    };
    let column = |column: &Column| (column.bytes_key(), bytes(&|called| called.known_sum(column.areas)));
    let rest = |called: &AccountRow| {
        let columns: Option<Bytes> = COLUMNS.iter().map(|one| called.known_sum(one.areas)).sum();
        let shown = columns? + called.resident_bytes_of(Area::JavaHeap)?;
        Some(called.resident_bytes.saturating_sub(shown))
    };
    ArmFigures {
        does: of.arm.accessors.story(of.arm.feature),
        options: of.arm.accessors.options(of.arm.feature),
        unsettled: of.counted.iter().filter(|trial| !trial.figures.at_rest).count(),
        classes: bytes(&|called| called.classes),
        resident_bytes: bytes(&|called| Some(called.resident_bytes)),
        call_ms: of.spread(&|figures| Some(figures.call_ms? as f64)),
        java_heap_bytes: bytes(&|called| called.resident_bytes_of(Area::JavaHeap)),
        rest_bytes: bytes(&rest),
        published_sum_bytes: bytes(&|called| called.known_sum(&[Area::ClassMetadata, Area::JitCode])),
        areas: COLUMNS.iter().map(column).collect(),
    }
}

/// What the most calls take more than the fewest, in class metadata and JIT code: bytes, and as a share of all that is resident
/// next to the Java heap.
pub fn more(few: &ArmFigures, many: &ArmFigures) -> Option<(f64, f64)> {
    let more = many.published_sum_bytes?.median - few.published_sum_bytes?.median;
    let beside_heap = many.resident_bytes?.median - many.java_heap_bytes?.median;
    (beside_heap > 0.0).then_some((more, more / beside_heap))
}

#[cfg(test)]
mod tests {
    use super::*;
    type Trial = trials::Trial<Arm, Figures>;
    use crate::map::Account;

    fn trial(calls: u64, classes: Bytes, code: Bytes) -> Trial {
        let account = AccountRow::of(Account::made_up(&[
            (Area::ClassMetadata, classes),
            (Area::JitCode, code),
            (Area::JitWork, 1),
            (Area::JvmWork, 2),
            (Area::MallocFreed, 3),
            (Area::JavaHeap, 100),
            (Area::Stack, 4),
        ]));
        let figures = Figures { loaded: None, called: Some(account), call_ms: Some(7), at_rest: true };
        let arm = Arm { jdk: "17".into(), feature: 17, accessors: Accessors::Default, calls };
        Trial { figures, ..Trial::of(0, arm) }
    }

    #[test]
    fn what_many_calls_take_more_than_few() {
        let trials = [trial(10, 10, 1), trial(2000, 30, 21)];
        let unknown = Arm { calls: 1, ..trials[0].arm.clone() };
        let [few, many, unknown] =
            [&trials[0].arm, &trials[1].arm, &unknown].map(|arm| figures(&OfArm::among(&trials, arm)));
        assert_eq!(many.rest_bytes.map(|spread| spread.median), Some(4.0));
        assert_eq!(more(&few, &many), Some((40.0, 40.0 / 61.0)));
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
