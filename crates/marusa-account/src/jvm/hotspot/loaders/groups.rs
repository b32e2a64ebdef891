//! Loaders that are alike, as one: those of one class whose names differ at most in their numbers.

use super::chunks::Held;
use super::data::LoaderData;
use crate::base::alike::group_of;
use crate::base::limits::LOADER_GROUPS_MAX;
use crate::base::{Addr, Bytes, Gap, Why};
use crate::jvm::hotspot::Hotspot;
use crate::jvm::hotspot::symbols::Names;
use crate::jvm::{BOOTSTRAP, LoaderGroup};
use std::cmp::Reverse;
use std::collections::HashMap;

const OTHERS: &str = "other class loaders";

pub struct Groups<'a> {
    vm: &'a Hotspot<'a>,
    /// Whether all figures are read.
    is_whole: bool,
    rows: Vec<LoaderGroup>,
    /// By class and name, as the VM has them.
    by_words: HashMap<(Addr, Addr), u32>,
    by_text: HashMap<(Option<String>, Option<String>), u32>,
    /// By the address of a `ClassLoaderData`: its group, and whether it is a hidden class's.
    by_loader: HashMap<Addr, (u32, bool)>,
    /// Loaders whose metaspace could not be read.
    torn: u64,
    unnamed: u64,
}

impl<'a> Groups<'a> {
    pub fn new(vm: &'a Hotspot<'a>, is_whole: bool) -> Groups<'a> {
        Groups {
            vm,
            is_whole,
            rows: Vec::new(),
            by_words: HashMap::new(),
            by_text: HashMap::new(),
            by_loader: HashMap::new(),
            torn: 0,
            unnamed: 0,
        }
    }

    /// One more loader. `held`: `None` where it could not be read; `resident`: of its chunks, where they were looked at.
    pub fn add(&mut self, loader: &LoaderData, held: Option<Held>, resident: Option<Bytes>) {
        let group = self.group(loader);
        let row = &mut self.rows[group as usize];
        row.loaders += u64::from(!loader.is_hidden);
        self.torn += u64::from(held.is_none());
        let more = |sum: &mut Option<Bytes>, bytes: Option<Bytes>| {
            *sum = sum.zip(bytes).map(|(sum, bytes)| sum.saturating_add(bytes));
        };
        more(&mut row.metaspace_bytes, held.map(|held| held.used));
        more(&mut row.class_space_bytes, held.map(|held| held.class_used));
        more(&mut row.metaspace_committed_bytes, held.map(|held| held.committed));
        more(&mut row.metaspace_resident_bytes, held.and(resident));
        if self.is_whole {
            self.by_loader.insert(loader.at, (group, loader.is_hidden));
        }
    }

    fn group(&mut self, loader: &LoaderData) -> u32 {
        if let Some(group) = self.by_words.get(&(loader.class, loader.name)) {
            return *group;
        }
        let class = self.class_name(loader.class);
        let name = (!loader.name.is_null()).then(|| self.text(loader.name)).flatten();
        self.unnamed += u64::from(class.is_none() || name.is_none() && !loader.name.is_null());
        let mut key = (class, name.as_deref().map(group_of));
        if self.rows.len() >= LOADER_GROUPS_MAX && !self.by_text.contains_key(&key) {
            key = (Some(OTHERS.to_string()), None);
        }
        let group = match self.by_text.get(&key) {
            Some(group) => *group,
            None => self.new_group(key),
        };
        self.by_words.insert((loader.class, loader.name), group);
        group
    }

    fn new_group(&mut self, key: (Option<String>, Option<String>)) -> u32 {
        let (number, whole) = (self.rows.len() as u32, self.is_whole.then_some(0));
        self.rows.push(LoaderGroup {
            class: key.0.clone(),
            name: key.1.clone(),
            loaders: 0,
            metaspace_bytes: Some(0),
            class_space_bytes: Some(0),
            metaspace_committed_bytes: Some(0),
            metaspace_resident_bytes: whole,
            classes: whole,
            hidden_classes: whole,
            malloc_bytes: whole,
            code_bytes: whole,
        });
        self.by_text.insert(key, number);
        number
    }

    /// The group of a `ClassLoaderData`.
    pub fn of(&self, loader: Addr) -> Option<u32> {
        self.by_loader.get(&loader).map(|(group, _)| *group)
    }

    /// Every `ClassLoaderData`, with its group.
    pub fn loaders(&self) -> impl Iterator<Item = (Addr, u32)> {
        self.by_loader.iter().map(|(loader, (group, _))| (*loader, *group))
    }

    pub fn count_class(&mut self, loader: Addr) -> Option<u32> {
        let (group, is_hidden) = *self.by_loader.get(&loader)?;
        let row = &mut self.rows[group as usize];
        row.classes = row.classes.map(|classes| classes + 1);
        row.hidden_classes = row.hidden_classes.map(|classes| classes + u64::from(is_hidden));
        Some(group)
    }

    pub fn row(&mut self, group: u32) -> &mut LoaderGroup {
        &mut self.rows[group as usize]
    }

    /// Takes back what turned out not to be known.
    pub fn forget(&mut self, take_back: impl Fn(&mut LoaderGroup)) {
        self.rows.iter_mut().for_each(take_back);
    }

    pub fn finish(self, gaps: &mut Vec<Gap>) -> Vec<LoaderGroup> {
        let mut rows = self.rows;
        rows.sort_by_cached_key(|row| {
            (Reverse(row.metaspace_bytes), Reverse(row.loaders), row.class.clone(), row.name.clone())
        });
        let what = |count: u64, of: &str| format!("{of} of {count} class loaders");
        if self.torn > 0 {
            gaps.push(Gap::new(what(self.torn, "metaspace"), Why::Torn));
        }
        if self.unnamed > 0 {
            gaps.push(Gap::new(what(self.unnamed, "class or name"), Why::Torn));
        }
        if rows.len() > LOADER_GROUPS_MAX {
            gaps.push(
                Gap::new("groups of class loaders", Why::OverLimit)
                    .hint(format!("the groups after the first {LOADER_GROUPS_MAX} are one, '{OTHERS}'")),
            );
        }
        rows
    }

    fn class_name(&self, class: Addr) -> Option<String> {
        if class.is_null() {
            return Some(BOOTSTRAP.to_string());
        }
        let name = self.vm.structs.offset("Klass", "_name").ok()?;
        let symbol = self.vm.memory().addr(class.plus(name)).ok()?;
        self.text(symbol).map(|name| name.replace('/', "."))
    }

    /// The text of a `Symbol`; `None` for an empty one.
    fn text(&self, symbol: Addr) -> Option<String> {
        let text = Names::read(self.vm).ok()?.text(self.vm.memory(), symbol)?;
        (!text.is_empty()).then_some(text)
    }
}
