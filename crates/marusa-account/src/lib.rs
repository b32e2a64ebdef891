//! Reads a running JVM on Linux, a core dump of one, or a frozen file, and gives every resident byte an owner.
//!
//! ```text
//! map ──> snapshot ──> { jvm | alloc } ──> os ──> base
//! ```
//!
//! A [`snapshot`] has the raw views of one moment: the kernel's ([`os`]), the runtime's ([`jvm`]) and malloc's ([`alloc`]).
//! [`map::join()`] gives every byte one owner, and [`map::Account`] has the figures that every output shows. Nothing here writes to
//! a target, stops it or sends it a signal.
//!
//! The areas of a process, here of this one, which has no JVM:
//!
//! ```
//! use marusa_account::map::{Account, join};
//! use marusa_account::os::process::Process;
//! use marusa_account::snapshot::{Want, take};
//!
//! let pid = std::process::id() as i32;
//! let process = Process::open(pid)?;
//! let snapshot = take(&process, Want::default()).map_err(|gap| gap.to_string())?;
//! let account = Account::of(&snapshot, &join(&snapshot));
//! for area in &account.areas {
//!     println!("{:>12} {}", area.amounts.resident_bytes, area.area.title());
//! }
//! let sum: u64 = account.areas.iter().map(|area| area.amounts.resident_bytes).sum();
//! assert_eq!(sum, account.totals.resident_bytes);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A frozen file, which `marusa freeze` writes:
//!
//! ```
//! use marusa_account::map::{Account, join};
//! use marusa_account::snapshot::file::Frozen;
//! use std::fs::File;
//!
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/frozen/jdk17-g1.frozen");
//! let snapshot = Frozen::load(&mut File::open(path)?)?.snapshot();
//! let account = Account::of(&snapshot, &join(&snapshot));
//! let jvm = account.jvm.ok_or("no JVM")?;
//! assert_eq!(jvm.gc.as_deref(), Some("g1"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A core dump:
//!
//! ```no_run
//! use marusa_account::map::{Account, join};
//! use marusa_account::os::core::Core;
//! use marusa_account::snapshot::{Want, core};
//!
//! let file = Core::open("core.4711".as_ref())?;
//! let snapshot = core::read(&file, Want::default())?;
//! let account = Account::of(&snapshot, &join(&snapshot));
//! println!("{} bytes of the core are resident", account.totals.resident_bytes);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod alloc;
pub mod base;
pub mod jvm;
pub mod map;
pub mod os;
pub mod snapshot;
