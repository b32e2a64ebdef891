//! `marusa compare --html FILE`: all of a comparison as one page that needs nothing else: no network, no script, readable
//! in light and dark, and on paper. The verdict first, then what it rests on: every figure of every run, in the order in
//! which they were measured, the pages that each run had, and the runs that do not count with why.

mod figures;
mod runs;

use super::{Result, basis, footnotes, sentence};
use crate::experiment::compare_result::{Against, Verdict};
use crate::experiment::trial_record::Figure;
use crate::show::plot::{self, escaped};

/// The page's own sample; colours are those of the plots.
const LOOK: &str = "\
body { margin: 0 auto; padding: 24px 20px 60px; max-width: 1040px; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 22px; line-height: 1.3; margin: 0 0 4px; overflow-wrap: anywhere; }
  h2 { font-size: 17px; margin: 36px 0 8px; }
h1 code { font-size: 18px; } .dim { color: var(--dim); } p { margin: 6px 0; max-width: 80ch; }
  code { font: 13px ui-monospace, monospace; }
ul.verdicts { list-style: none; padding: 0; margin: 18px 0; } ul.verdicts li { display: grid;
  grid-template-columns: minmax(7ch, auto) 1fr; gap: 0 14px; padding: 10px 14px; margin: 8px 0; background: var(--soft);
  border-left: 5px solid var(--rule); } li.better { border-color: var(--good) !important; }
  li.worse { border-color: var(--bad) !important; }
.better b.word { color: var(--good); } .worse b.word { color: var(--bad); }
.wide { overflow-x: auto; } table { border-collapse: collapse; margin: 8px 0; font-variant-numeric: tabular-nums;
  font-size: 14px; }
th, td { padding: 4px 12px 4px 0; text-align: left; vertical-align: top; border-bottom: 1px solid var(--rule); }
th { font-weight: 600; } td.n, th.n { text-align: right; white-space: nowrap; }
  td.text { overflow-wrap: anywhere; min-width: 14ch; }
td.nowrap { white-space: nowrap; } tr.out td { color: var(--dim); } tr.about { background: var(--soft); }
figure { margin: 14px 0; } .pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 460px), 1fr));
  gap: 8px 28px; }
@media print { body { max-width: none; padding: 0; font-size: 11pt; } ul.verdicts li { background: none; }
  tr, li, figure { break-inside: avoid; }
  h2 { break-after: avoid; } .wide { overflow: visible; } }
@media (max-width: 600px) { body { padding: 12px 12px 40px; } ul.verdicts li { grid-template-columns: 1fr; }
  table.data thead { display: none; } }
";

/// The columns of the table of runs.
const RUN_COLUMNS: usize = 7;

/// A table that fits a narrow screen: ">RUN" is a column of numbers; rows are markup.
fn table<S: AsRef<str>>(name: &str, columns: &[S], rows: &str) -> String {
    let titles = columns.iter().map(|title| match title.as_ref().strip_prefix('>') {
        Some(title) => (title, " class=\"n\""),
        None => (title.as_ref(), ""),
    });
    let labels = plot::labels(titles.clone().map(|(title, _)| title));
    let head = |(title, class)| format!("<th scope=\"col\"{class}>{}</th>", escaped(title));
    let head: String = titles.map(head).collect();
    format!(
        "<div class=\"wide\" tabindex=\"0\" role=\"group\" aria-label=\"{name}\"><table class=\"data\"{labels}>\
         <thead><tr>{head}</tr></thead><tbody>\n{rows}</tbody></table></div>"
    )
}

/// The whole page.
pub fn page(result: &Result) -> String {
    let design = &result.design;
    let command = escaped(&design.head.command.join(" "));
    let columns = 1 + 3 * result.comparison.arms.len();
    let parts = [
        format!("<h1><code>{command}</code></h1>\n{}", set_up(result)),
        verdicts(result),
        figures::main(result),
        figures::table(result),
        figures::all(result),
        figures::accounts(result),
        runs::arms(result),
        runs::table(result),
        notes(result),
    ];
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>marusa compare: {command}</title>\n<style>\n{}{}{}{LOOK}</style></head>\n<body><main>\n{}\n</main></body></html>\n",
        plot::STYLE,
        plot::CARDS,
        plot::label_rules(columns.max(RUN_COLUMNS)),
        parts.join("\n")
    )
}

fn set_up(result: &Result) -> String {
    let head = &result.design.head;
    let mut jvms: Vec<&str> = head.jvms.iter().map(String::as_str).filter(|jvm| !jvm.is_empty()).collect();
    jvms.dedup();
    let mut words = vec![head.made_at.clone()];
    words.extend(jvms.into_iter().map(str::to_string));
    words.push(format!("Linux {}, {} CPUs", head.host.kernel, head.host.cpus));
    let words: Vec<String> = words.iter().map(|word| escaped(word)).collect();
    format!("<p class=\"dim\">{}<br>\n{}</p>", words.join(" · "), escaped(&basis(&result.comparison)))
}

fn verdicts(result: &Result) -> String {
    let comparison = &result.comparison;
    let Some(row) = comparison.main_row() else { return "<p>No figure was measured.</p>".to_string() };
    let base = comparison.arms.first().map_or("", |arm| arm.name.as_str());
    let mut items = String::new();
    for (arm, cell) in comparison.arms.iter().zip(&row.cells).skip(1) {
        let (class, said) = match &cell.against {
            Some(against) => {
                (class(&row.figure, against), sentence(&row.figure, base, against, comparison.worth_percent))
            }
            None => ("", format!("no comparison: too few runs of it and of {base} are in the same block")),
        };
        // The first word is the verdict, where there is one.
        let said = match said.split_once(": ") {
            Some((word, rest)) if !class.is_empty() => {
                format!("<b class=\"word\">{}</b>: {}", escaped(word), escaped(rest))
            }
            _ => escaped(&said),
        };
        items += &format!(
            "<li class=\"{class}\"><b class=\"arm\">{}</b> <span>{said}</span></li>\n",
            escaped(&arm.name)
        );
    }
    let early = result.early.as_ref();
    let early = early.map_or(String::new(), |why| format!("<p><b>Ended early:</b> {}</p>\n", escaped(why)));
    format!("<ul class=\"verdicts\">\n{items}</ul>\n{early}")
}

/// "better", "worse", or neither.
fn class(figure: &Figure, against: &Against) -> &'static str {
    match against.verdict {
        Verdict::NotShown => "",
        verdict if (verdict == Verdict::Less) == figure.lower_is_better => "better",
        _ => "worse",
    }
}

fn notes(result: &Result) -> String {
    let lines = footnotes(result);
    let items: Vec<String> = lines
        .iter()
        .filter(|line| !line.is_empty())
        .map(|line| format!("<li>{}</li>", escaped(line)))
        .collect();
    let items = if items.is_empty() { String::new() } else { format!("<ul>\n{}\n</ul>\n", items.join("\n")) };
    let head = &result.design.head;
    format!(
        "<h2>Notes</h2>\n{items}<p class=\"dim\">Made by {}, seed {}. Each block has one run of each arm, in an \
         order by chance; arms are compared within blocks, so that what drifts from block to block falls out. An interval \
         holds the true difference with the stated confidence. Where it holds 0, no difference is shown: that is no \
         proof that there is none.</p>",
        escaped(&head.made_by),
        head.seed
    )
}

#[cfg(test)]
mod tests;
