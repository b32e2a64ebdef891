//! CPU time of other programs during the trials: without it a table of times cannot be judged.

use crate::base::counted;
use crate::os::busy::Others;

/// "other programs used 0.02 (at most 0.05) of 2 CPUs during the trials, ..."; `None` if no trial knows it.
pub fn line(trials: impl Iterator<Item = Option<Others>>) -> Option<String> {
    let known: Vec<Others> = trials.flatten().collect();
    let cpus = known.first()?.of_cpus;
    let of = |of: fn(&Others) -> f64| {
        let mean = known.iter().map(of).sum::<f64>() / known.len() as f64;
        let most = known.iter().map(of).fold(0.0, f64::max);
        format!("{mean:.2} (at most {most:.2})")
    };
    let (others, stolen) = (of(|others| others.cpus), of(|others| others.stolen_cpus));
    let disturbed = match known.iter().filter(|others| others.disturb()).count() {
        0 => "no trial was disturbed".to_string(),
        count => format!("DISTURBED: {} of {}", counted(count, "trial"), known.len()),
    };
    Some(format!(
        "other programs used {others} of {cpus} CPUs during the trials, stolen: {stolen}; {disturbed}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line_of(cpus: &[f64]) -> String {
        let others = |cpus: &f64| Some(Others { cpus: *cpus, stolen_cpus: 0.0, of_cpus: 2 });
        line(cpus.iter().map(others).chain([None])).unwrap_or_default()
    }

    #[test]
    fn disturbed_trials_are_counted() {
        assert_eq!(line_of(&[]), "");
        let quiet = line_of(&[0.02, 0.04]);
        assert!(
            quiet.contains("0.03 (at most 0.04) of 2 CPUs") && quiet.contains("no trial was disturbed"),
            "{quiet}"
        );
        assert!(line_of(&[0.02, 0.9]).contains("DISTURBED: 1 trial of 2"));
    }
}
