//! `marusa pages plan --code` as text: what is copied and what is linked, what it costs, and the way on.

use crate::pages::{Change, Feasible, Plan};
use crate::show::units::{counted, hanging, human, led, pasted, shorten};
use crate::show::width::width;
use std::io::{self, Write};

/// `file`: where the plan was written to.
pub fn text(out: &mut dyn Write, plan: &Plan, file: Option<&str>) -> io::Result<()> {
    writeln!(out, "plan {}", shorten(&plan.outlook.name, width() - 5))?;
    let version = plan.subject.version.clone().unwrap_or_else(|| plan.subject.feature.to_string());
    writeln!(out, "for  the code of JDK {}", shorten(&version, width() - 25))?;
    let word = if plan.outlook.feasible == Feasible::No { "NO" } else { "YES" };
    writeln!(out, "now? {word}, {}", shorten(&plan.outlook.feasible_why, width() - 10))?;
    for need in &plan.needs {
        let bytes = human(need.pages.saturating_mul(need.page_bytes));
        let pages = counted(need.pages, "page");
        writeln!(out)?;
        hanging(out, &format!("{}: {bytes} of {} on {pages} of 2M", need.part, human(need.bytes)), 0)?;
    }
    writeln!(out, "\nsteps")?;
    for (index, step) in plan.steps.iter().enumerate() {
        led(out, &format!("{:>3}  ", index + 1), &step.what)?;
        if let Change::CopyTree { linked, .. } = &step.change {
            led(out, "       links: ", &linked.join(", "))?;
        }
    }
    plan.costs.iter().try_for_each(|cost| led(out, "cost: ", cost))?;
    plan.risks.iter().try_for_each(|risk| led(out, "risk: ", risk))?;
    let name = file.unwrap_or("PLAN");
    writeln!(out, "\nnext")?;
    if file.is_none() {
        hanging(out, "marusa pages plan ... -o PLAN   keeps it", 2)?;
    }
    writeln!(out, "  marusa pages apply {name}")?;
    for program in &plan.jvm_options {
        pasted(out, "  ", &format!("{program} ..."))?;
        hanging(out, "starts the program from there, with the options that it has now", 4)?;
    }
    writeln!(out, "  marusa pages verify TARGET {name}")?;
    writeln!(out, "  marusa pages undo {name}")
}
