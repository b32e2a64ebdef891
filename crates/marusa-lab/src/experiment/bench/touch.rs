//! `marusa bench touch`: what the first touch of memory costs, by page size and number of threads, and how many bytes of page
//! tables it leaves. By memory of our own, where the zeroing can be distinguished from the rest, and by JVMs that touch their heap
//! when they start (-XX:+AlwaysPreTouch).

use super::Machine;
use super::spread::Spread;
use super::trials::{self, OfArm};
use crate::act::first_touch::Pages;
use crate::base::Bytes;
use crate::os::machine::base_page;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Who touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// Memory of our own.
    Own,
    /// The heap of a JVM, when it starts.
    Jvm,
}

impl By {
    pub fn name(self) -> &'static str {
        match self {
            By::Own => "own",
            By::Jvm => "JVM",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize, Deserialize)]
pub struct Arm {
    pub by: By,
    #[serde(flatten)]
    pub pages: Pages,
    pub threads: usize,
}

impl trials::Arm for Arm {
    fn name(&self) -> String {
        format!("{}, {}, threads {}", self.by.name(), self.pages.name(), self.threads)
    }
}

/// What was asked for.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Settings {
    pub machine: Machine,
    /// `None`: no JVM is measured.
    pub jdk: Option<String>,
    pub bytes: Bytes,
    pub rounds: usize,
    pub seed: u64,
}

pub type Trial = trials::Trial<Arm, Figures>;

/// One touch.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Figures {
    /// Memory that was touched.
    pub bytes: Bytes,
    /// The share of it on pages of the arm's size.
    pub share: Option<f64>,
    /// Until the last thread was done.
    pub touch_ns: Option<f64>,
    /// On processors, all threads together: what others took in the meantime is not in it.
    pub touch_cpu_ns: Option<f64>,
    /// Writing the same bytes once more; only of our own memory.
    pub fill_cpu_ns: Option<f64>,
    pub faults: Option<u64>,
    pub page_table_bytes: Option<Bytes>,
}

impl Figures {
    fn by_page(&self, ns: Option<f64>) -> Option<f64> {
        Some(ns? / (self.bytes as f64 / base_page() as f64))
    }
    /// What is not zeroing: the faults themselves, taking pages, page tables. Not below nothing: it is a difference.
    fn rest_ns(&self) -> Option<f64> {
        Some((self.touch_cpu_ns? - self.fill_cpu_ns?).max(0.0))
    }
    /// Bytes a nanosecond are 10^9 bytes a second.
    fn gb_per_second(&self) -> Option<f64> {
        Some(self.bytes as f64 / self.touch_ns?)
    }
    fn tables_per_gib(&self) -> Option<f64> {
        Some(self.page_table_bytes? as f64 * (1_u64 << 30) as f64 / self.bytes as f64)
    }
}

#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct ArmFigures {
    pub ns_per_4k: Option<Spread>,
    pub cpu_ns_per_4k: Option<Spread>,
    pub zeroing_ns_per_4k: Option<Spread>,
    pub rest_ns_per_4k: Option<Spread>,
    pub gb_per_second: Option<Spread>,
    pub faults: Option<Spread>,
    pub page_table_bytes_per_gib: Option<Spread>,
    pub share: Option<Spread>,
}

pub fn figures(of: &OfArm<Arm, Figures>) -> ArmFigures {
    let by_page = |ns: fn(&Figures) -> Option<f64>| of.spread(&|figures| figures.by_page(ns(figures)));
    ArmFigures {
        ns_per_4k: by_page(|figures| figures.touch_ns),
        cpu_ns_per_4k: by_page(|figures| figures.touch_cpu_ns),
        zeroing_ns_per_4k: by_page(|figures| figures.fill_cpu_ns),
        rest_ns_per_4k: by_page(Figures::rest_ns),
        gb_per_second: of.spread(&Figures::gb_per_second),
        faults: of.spread(&|figures| Some(figures.faults? as f64)),
        page_table_bytes_per_gib: of.spread(&Figures::tables_per_gib),
        share: of.spread(&|figures| figures.share),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touched(touch_ns: f64, fill_cpu_ns: Option<f64>) -> Figures {
        Figures {
            bytes: 1 << 30,
            share: Some(1.0),
            touch_ns: Some(touch_ns),
            touch_cpu_ns: Some(touch_ns / 2.0),
            fill_cpu_ns,
            faults: Some(262_144),
            page_table_bytes: Some(2 << 20),
        }
    }

    #[test]
    fn figures_by_page() {
        let found = touched(262_144_000.0, Some(100_000_000.0));
        assert_eq!(found.by_page(found.touch_ns), Some(1000.0));
        assert_eq!(found.by_page(found.touch_cpu_ns), Some(500.0));
        assert!((found.gb_per_second().expect("touched") - 4.096).abs() < 1e-9);
        assert!((found.by_page(found.fill_cpu_ns).expect("own") - 381.47).abs() < 0.01);
        assert!((found.by_page(found.rest_ns()).expect("own") - 118.53).abs() < 0.01);
        assert_eq!(found.tables_per_gib(), Some(2097152.0));
        assert_eq!(touched(1.0, Some(2.0)).rest_ns(), Some(0.0));
        assert_eq!(touched(1.0, None).rest_ns(), None);
    }

    #[test]
    fn what_does_not_count_is_left_out() {
        let arms: Vec<Arm> = [Pages::Small, Pages::Transparent(64 << 10), Pages::HugeTlb(2 << 20)]
            .map(|pages| Arm { by: By::Own, pages, threads: 1 })
            .to_vec();
        let names: Vec<String> = arms.iter().map(|arm| arm.pages.name()).collect();
        assert_eq!(names, ["4k", "thp-64k", "hugetlb-2m"]);
        let trial = |round, ns| Trial { figures: touched(ns, None), ..Trial::of(round, arms[0].clone()) };
        let mut trials = vec![trial(0, 10.0), trial(1, 30.0), trial(2, 900.0)];
        trials[2].discount("on 2M pages");
        let [of_first, of_second] = [0, 1].map(|at: usize| OfArm::among(&trials, &arms[at]));
        let spread = figures(&of_first).ns_per_4k.expect("two");
        assert_eq!((spread.median * 262_144.0, spread.max * 262_144.0, spread.count), (20.0, 30.0, 2));
        assert_eq!((of_first.all.len(), figures(&of_second).ns_per_4k), (3, None));
    }

    #[test]
    fn an_arm_is_the_same_when_it_was_saved() {
        for pages in [Pages::Small, Pages::Transparent(64 << 10), Pages::HugeTlb(2 << 20)] {
            let arm = Arm { by: By::Jvm, pages, threads: 2 };
            let text = serde_json::to_string(&arm).expect("JSON");
            assert_eq!(serde_json::from_str::<Arm>(&text).expect("an arm"), arm, "{text}");
        }
    }
}
