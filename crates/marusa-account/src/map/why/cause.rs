//! The causes of memory on other pages than were possible, asked for or planned, one key each. `map` and `pages verify` print
//! it in their JSON, the doctor chooses its finding by it.

use schemars::JsonSchema;
use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CauseId {
    // How the memory lies.
    TooSmall,
    Unaligned,
    Edge,
    Special,
    NeverTouched,
    PrivateCopy,
    FileSystem,
    // What the kernel, the host's policy and the process allow.
    AdvisedAgainst,
    ProcessDisabled,
    #[serde(rename = "no_transparent_huge_pages")]
    NoTransparent,
    PolicyOff,
    NotAdvised,
    NoKernelOption,
    #[serde(rename = "tmpfs_mount")]
    Tmpfs,
    OtherSize,
    Split,
    Hole,
    NotYet,
    NotKnown,
    // HugeTLB.
    /// The kernel has no pages of this size.
    NoHugetlb,
    PoolEmpty,
    PoolShort,
    CgroupLimit,
    HugetlbInstead,
    HugetlbNotAsked,
    NoHugetlbForIt,
    // The JVM is not the one that was planned, or has given up.
    SwitchedOff,
    OtherJdk,
    OtherGc,
    OtherHeap,
    OtherJava,
    OptionsMissing,
    OptionsDiffer,
    // Worth knowing, and no broken promise.
    NotTouched,
    NotFound,
    FalseReport,
}
