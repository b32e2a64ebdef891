//! A row of the answer of `leak`: what grows, what it grows with, and who holds it. `leaks` makes the rows, `counts` and `held_by`
//! complete them, and `headline` reads them.

use super::key::Named;
use crate::map::Area;
use crate::measure::growth::Growth;
use schemars::JsonSchema;
use serde::Serialize;

/// What is looked at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    /// All but the Java heap, which has a bound of its own.
    All,
    /// What the last collection left.
    HeapInUse,
    Area(Area),
    Part(Area, String),
    Named(Named, String),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub what: What,
    pub growth: Growth,
    /// What it grows with.
    pub with: Option<Counted>,
    /// Where it grows and holders were recorded, the ones that grow with it, the fastest first.
    pub held_by: Vec<Holder>,
}

impl Row {
    /// How fast it grows now, in bytes per hour.
    pub fn pace(&self) -> f64 {
        self.growth.rate.map_or(0.0, |rate| rate.bytes_per_hour)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Count {
    Threads,
    ClassLoaders,
    MappedFiles,
    MallocArenas,
}

impl Count {
    pub fn title(self) -> &'static str {
        match self {
            Count::Threads => "threads",
            Count::ClassLoaders => "class loaders",
            Count::MappedFiles => "mappings of files",
            Count::MallocArenas => "malloc arenas",
        }
    }
}

/// The count that an area grows with.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Counted {
    pub count: Count,
    /// The name of threads and class loaders without its numbers, where those of one name make most of the growth.
    pub name: Option<String>,
    /// From the first account to the last.
    pub grown: i64,
    /// Its first area; the others only grow with it.
    #[serde(skip)]
    pub is_first: bool,
}

/// A holder that grows, a group of class loaders, or a class.
#[derive(Clone, Debug, PartialEq)]
pub struct Holder {
    pub kind: Named,
    pub name: String,
    /// Growth of the bytes of its blocks, its chunks of metaspace or its objects; in memory or not.
    pub growth: Growth,
    /// Blocks, loaders or instances, from the first account that has it to the last; `None`: not recorded.
    pub count_grown: Option<i64>,
}

impl Holder {
    /// Bytes per hour; as long as no rate is known, those of the whole time.
    pub fn pace(&self) -> f64 {
        let mean = self.growth.grown_bytes as f64 / self.growth.grown_seconds.max(1.0) * 3600.0;
        self.growth.rate.map_or(mean, |rate| rate.bytes_per_hour)
    }
}
