//! `--deadline`: more or less time for reading one process than the command gives by default (`base::limits`).

use super::amount;
use crate::base::limits::TargetLimits;
use crate::os::budget;
use std::time::Duration;

#[derive(clap::Args, Clone, Copy, Debug, Default)]
pub struct DeadlineArgs {
    /// How long reading one process may take, as 500ms, 30s, 5m; what is not read by then is reported as missing
    #[arg(long, value_name = "TIME", value_parser = amount::duration)]
    deadline: Option<Duration>,
}

impl DeadlineArgs {
    /// Sets what each target of this command may take: `limits`, with the time that the user chose.
    pub fn set(self, limits: TargetLimits) {
        budget::set_limits(TargetLimits { time: self.deadline.unwrap_or(limits.time), ..limits });
        budget::allow_more_time();
    }
}
