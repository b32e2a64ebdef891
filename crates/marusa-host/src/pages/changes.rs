//! The receipts of changes of the host and of JVMs, for those rooms that show them.

pub use crate::act::door::content;
pub use crate::act::door::journal::{Goal, How, Seen};
pub use crate::act::door::step::{Change, Step};
pub use crate::act::door::store::{Kept, State};
pub use crate::act::door::{DoorError, Made, Outcome, Preview, Receipt, TakenBack, UndoReceipt};
pub use crate::act::trim::{Receipt as TrimReceipt, Way as TrimWay};
