//! What the doctor found, with evidence, cost and remedy.

use super::Findings;
use super::safe::escaped;
use crate::doctor::{Finding, Level, Subject};
use crate::show::doctor::{cost, label, value};

pub fn section(findings: Findings) -> String {
    let mut html = match findings.looked_at {
        "" => String::new(),
        text => format!("<p class=\"dim\">{}</p>\n", escaped(text)),
    };
    if findings.list.is_empty() {
        return html + "<p>Nothing was found.</p>\n";
    }
    let (first, rest) = findings.list.split_at(findings.list.len().min(SHOWN_MAX));
    html += &list(first);
    if !rest.is_empty() {
        html += &format!("<details><summary>{} more</summary>\n{}</details>\n", rest.len(), list(rest));
    }
    html
}

/// Findings that are shown at once; of hundreds of JVMs there are hundreds. The gravest come first.
const SHOWN_MAX: usize = 20;

fn list(findings: &[Finding]) -> String {
    format!("<ol class=\"findings\">\n{}</ol>\n", findings.iter().map(one).collect::<String>())
}

fn one(finding: &Finding) -> String {
    // Distinguished by words and shapes, not by colour alone.
    let mark = match finding.level {
        Level::Critical => "▲",
        Level::Warn => "◆",
        Level::Info => "●",
    };
    let subject = match finding.subject {
        Subject::Host => "host".to_string(),
        Subject::Jvm(pid) => format!("pid {pid}"),
    };
    let level = finding.level.word();
    let mut html = format!(
        "<li class=\"{level}\"><details{}><summary><span class=\"level\">{mark} {level}</span> {} \
         <span class=\"dim\">{} · {}</span></summary>\n",
        if finding.level == Level::Info { "" } else { " open" },
        escaped(&finding.title),
        escaped(&subject),
        escaped(finding.id),
    );
    if !finding.evidence.is_empty() {
        html += "<table class=\"evidence\"><tbody>";
        for evidence in &finding.evidence {
            html += &format!(
                "<tr><th scope=\"row\">{}</th><td>{}</td><td class=\"dim\">{}</td></tr>",
                escaped(&evidence.what),
                escaped(&value(evidence)),
                escaped(&evidence.source)
            );
        }
        html += "</tbody></table>\n";
    }
    if let Some(cost) = cost(&finding.cost) {
        html += &format!("<p>Cost: {}</p>", escaped(&cost));
    }
    for remedy in &finding.remedies {
        html += &match label(remedy) {
            (label, true) => format!("<p>{label}: <code>{}</code></p>", escaped(remedy.text())),
            (_, false) => format!("<p>{}</p>", escaped(remedy.text())),
        };
    }
    html + "</details></li>\n"
}
