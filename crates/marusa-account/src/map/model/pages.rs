//! Page sizes in the account: how they are known and how sure they are, for the whole process.

use super::amounts::{Amounts, by_kind};
use crate::base::Bytes;
use crate::os::page_kind::{Contiguous, Look, PageKind, PageSizes};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct PageSizesAccount {
    pub by_page_size: BTreeMap<Bytes, Bytes>,
    #[serde(default, with = "by_kind")]
    #[schemars(with = "BTreeMap<String, Bytes>")]
    pub by_page_kind: Option<BTreeMap<PageKind, Bytes>>,
    pub estimated: bool,
    /// By page size, what the estimates may be off by.
    pub error_bytes: BTreeMap<Bytes, Bytes>,
    pub looks: Vec<Look>,
    pub contiguous: Option<Contiguous>,
    /// With what the blocks of the samples were chosen.
    pub seed: u64,
}

impl PageSizesAccount {
    pub fn of(sizes: &PageSizes, total: Amounts) -> PageSizesAccount {
        PageSizesAccount {
            by_page_size: total.by_page_size,
            by_page_kind: total.by_page_kind,
            estimated: sizes.is_estimated(),
            error_bytes: sizes.error_bytes(),
            looks: sizes.looks.clone(),
            contiguous: sizes.contiguous.as_ref().ok().copied(),
            seed: sizes.seed,
        }
    }
}
