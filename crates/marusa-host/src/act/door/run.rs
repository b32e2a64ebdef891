//! A run on its way: the machine that it changes and the journal that it writes. `apply` makes its steps and leaves to `add` the
//! ones that add to a number; both need it.

use super::machine::Machine;
use super::store::Journal;

pub(super) struct Run<'a> {
    pub machine: &'a dyn Machine,
    pub journal: Journal,
    pub drop_caches: bool,
}
