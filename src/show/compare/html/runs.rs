//! What ran: the arms as they were set up, and every run with the pages that it had and, if it does not count, why.

use crate::experiment::trial_record::Trial;
use crate::show::compare::{Result, arm_words, figure};
use crate::show::plot::escaped;

pub fn arms(result: &Result) -> String {
    let mut rows = String::new();
    for (design, count) in result.design.arms.iter().zip(&result.comparison.arms) {
        rows += &format!(
            "<tr><td class=\"nowrap\"><b>{}</b></td><td class=\"text\">{}</td><td class=\"text\">{}</td>\
             <td class=\"n\">{}</td><td class=\"text code\"><code>{}</code></td></tr>\n",
            escaped(&design.name),
            escaped(&arm_words(design)),
            escaped(count.heap_pages.as_deref().unwrap_or("-")),
            count.counted,
            escaped(&design.command.join(" "))
        );
    }
    let columns = ["arm", "what it has", "heap was on (last run)", ">runs that count", "command"];
    format!("<h2>Arms</h2>\n{}", super::table("Arms", &columns, &rows))
}

pub fn table(result: &Result) -> String {
    let about = result.comparison.main_row();
    let name = about.map_or("", |row| row.figure.name.trim());
    let mut rows = String::new();
    for trial in &result.trials {
        let value =
            about.and_then(|row| Some(figure::value(trial.figure(&row.figure.key)?, &row.figure.unit)));
        let (class, why) = judged(result, trial);
        rows += &format!(
            "<tr{class}><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"nowrap\">{}</td>\
             <td class=\"nowrap\">{}</td><td class=\"n\">{}</td>\
             <td class=\"text\">{}</td><td class=\"text\">{}</td></tr>\n",
            trial.number,
            trial.block,
            escaped(&trial.arm),
            escaped(&trial.started),
            escaped(value.as_deref().unwrap_or("-")),
            escaped(&pages(trial)),
            escaped(&why)
        );
    }
    let columns = [">run", ">block", "arm", "started", &format!(">{name}"), "heap pages", "note"];
    format!("<h2>Every run</h2>\n{}", super::table("Every run", &columns, &rows))
}

fn judged(result: &Result, trial: &Trial) -> (&'static str, String) {
    match &trial.left_out {
        Some(why) => (" class=\"out\"", format!("does not count: {why}")),
        None if trial.block <= result.comparison.warm_up_blocks => (" class=\"out\"", "warm-up".to_string()),
        None => ("", trial.notes.join("; ")),
    }
}

fn pages(trial: &Trial) -> String {
    match &trial.heap_pages {
        None => "-".to_string(),
        Some(pages) => match (&pages.why, pages.met) {
            (Some(why), false) => format!("{}: {why}", pages.text),
            _ => pages.text.clone(),
        },
    }
}
