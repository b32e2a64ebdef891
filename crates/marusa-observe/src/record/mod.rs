//! The account over time: what of each moment is kept, the form of the file, and the histories that are read back from it.
//!
//! Nothing here opens a file: the writer makes bytes (`writer`), the reader takes bytes (`reader`), so that any end of a file
//! can be tried, and `cmd` does the rest. `key` names a series, `frame` is the bytes, `figures` goes from an
//! account to series and back, `history` is what is known of one JVM over time, `pace` decides how often it is looked at how
//! closely, `trust` how long a reading may take that failed before, `holders` which holders of malloc's blocks and classes are
//! kept, and `note` has what no series says. `leaks` judges a history by the figures that were really read (`leak_series`), area
//! by area (`leak_row`), `headline` is its answer, `held_by` says who holds what grows, and `since` has what came after the last
//! account.

pub mod compiled;
pub mod counts;
pub mod figures;
pub mod frame;
pub mod glance;
pub mod headline;
pub mod held_by;
pub mod history;
pub mod holders;
pub mod key;
pub mod leak_row;
pub mod leak_series;
pub mod leaks;
#[cfg(any(test, feature = "made-up"))]
#[path = "made_up_tests.rs"]
pub mod made_up;
pub mod moment;
pub mod note;
pub mod over_time;
pub mod pace;
#[cfg(any(test, feature = "made-up"))]
#[path = "prepared_tests.rs"]
pub mod prepared;
pub mod reader;
pub mod rows;
pub mod since;
pub mod trust;
pub mod writer;

pub use history::{History, Recording};
pub use key::{Key, Measure, Subject};
pub use moment::Moment;
