//! What `deploy/` asks a cluster and a Prometheus for: figures that exist, the least rights in each variant, and one set of alerts.

use crate::ratchets::root;
use marusa::serve::catalogue::{JVM, JVM_LABELS, Metric, NODE, OWN};
use regex::Regex;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::process::Command;
use yaml_rust2::{Yaml, YamlLoader};

fn text(path: &str) -> String {
    fs::read_to_string(root().join("deploy").join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn yaml(text: &str) -> Yaml {
    YamlLoader::load_from_str(text).expect("YAML").remove(0)
}

fn names<T>(metrics: &[Metric<T>]) -> impl Iterator<Item = String> + '_ {
    metrics.iter().map(Metric::sample)
}

/// Names of figures that a query uses and the catalogue lacks.
fn unknown(query: &str) -> Vec<String> {
    let known: BTreeSet<String> = names(JVM).chain(names(NODE)).chain(names(OWN)).collect();
    let labels: BTreeSet<&str> = JVM.iter().flat_map(|it| it.labels).copied().collect();
    let name = Regex::new(r"\b(?:marusa|process)_[a-z_]+").expect("a pattern");
    let matcher = Regex::new(r"\{[^}]*\}").expect("a pattern");
    assert!(JVM_LABELS.contains(&"jvm") && labels.contains("area"));
    name.find_iter(&matcher.replace_all(query, ""))
        .map(|found| found.as_str().to_string())
        .filter(|found| !known.contains(found))
        .collect()
}

fn rules(group: &Yaml) -> &Vec<Yaml> {
    group["groups"][0]["rules"].as_vec().expect("rules")
}

#[test]
fn alerts_use_figures_that_exist_and_have_a_runbook() {
    let alerts = yaml(&text("prometheus/alerts.yaml"));
    let tests = text("prometheus/alerts_test.yaml") + &text("prometheus/alerts_growth_test.yaml");
    let ids_of = Regex::new(r#"id=~"([^"]+)""#).expect("a pattern");
    let (recorded, alerting): (Vec<&Yaml>, Vec<&Yaml>) =
        rules(&alerts).iter().partition(|rule| !rule["record"].is_badvalue());
    for rule in recorded {
        let (name, query) =
            (rule["record"].as_str().expect("a name"), rule["expr"].as_str().expect("a query"));
        assert!(
            name.starts_with("marusa:") && query.contains("marusa_") && unknown(query).is_empty(),
            "{name}"
        );
    }
    for rule in alerting {
        let name = rule["alert"].as_str().expect("a name");
        let query = rule["expr"].as_str().expect("a query");
        assert!(query.contains("marusa_") && unknown(query).is_empty(), "{name}: {:?}", unknown(query));
        assert!(
            ["info", "warning", "critical"]
                .contains(&rule["labels"]["severity"].as_str().expect("a severity"))
        );
        let of = |key: &str| rule["annotations"][key].as_str().unwrap_or_else(|| panic!("{name}: {key}"));
        assert!(!of("summary").is_empty() && !of("description").is_empty());
        let runbook = of("runbook_url");
        let ids = ids_of.captures(query).map_or("", |found| found.get(1).expect("ids").as_str());
        for id in ids.split('|') {
            let page = runbook.replace("{{ $labels.id }}", id);
            assert!(root().join(&page).is_file(), "{name}: {page}");
        }
        assert!(tests.contains(name), "{name} has no test");
    }
    assert_eq!(unknown("sum(marusa_no_such) + marusa_jvm_threads{id=\"marusa_x\"}"), ["marusa_no_such"]);
}

#[test]
fn the_operator_gets_the_same_alerts() {
    let alerts = yaml(&text("prometheus/alerts.yaml"));
    let operator = yaml(&text("kustomize/components/monitoring/prometheusrule.yaml"));
    assert_eq!(operator["spec"], alerts);
    assert_eq!(text("helm/marusa/alerts.yaml"), text("prometheus/alerts.yaml"));
}

/// dashboard-linter's rules.
#[test]
fn the_dashboard_keeps_the_rules_of_dashboards() {
    let dashboard: Value = serde_json::from_str(&text("grafana/marusa.json")).expect("JSON");
    assert!(
        dashboard["editable"] == false && dashboard["schemaVersion"].is_u64() && dashboard["uid"].is_string()
    );
    let variables = dashboard["templating"]["list"].as_array().expect("variables");
    let named: Vec<&str> = variables.iter().filter_map(|it| it["name"].as_str()).collect();
    assert_eq!(named[..3], ["datasource", "job", "instance"]);
    // Reloaded when the time range changes.
    assert!(variables[1..].iter().all(|it| it["refresh"] == 2 && it["datasource"]["uid"] == "$datasource"));
    let range = Regex::new(r"\[([^\]]+)\]").expect("a pattern");
    let selector = Regex::new(r"\b(?:marusa|process)_[a-z_]+(\{[^}]*\})?").expect("a pattern");
    for panel in dashboard["panels"].as_array().expect("panels").iter().filter(|it| it["type"] != "row") {
        let title = panel["title"].as_str().expect("a title");
        assert!(
            panel["description"].is_string() && panel["fieldConfig"]["defaults"]["unit"].is_string(),
            "{title}"
        );
        assert_eq!(panel["datasource"]["uid"], "$datasource", "{title}");
        let targets = panel["targets"].as_array().expect("targets");
        assert!(!targets.is_empty(), "{title}");
        for query in targets.iter().map(|target| target["expr"].as_str().expect("a query")) {
            assert!(unknown(query).is_empty(), "{title}: {:?}", unknown(query));
            assert!(range.captures_iter(query).all(|it| &it[1] == "$__rate_interval"), "{title}: {query}");
            for found in selector.captures_iter(query) {
                let matchers = found.get(1).map_or("", |it| it.as_str());
                let has = |name: &str| matchers.contains(&format!("{name}=~\"${name}\""));
                assert!(has("job") && has("instance"), "{title}: {query}");
                assert_eq!(found[0].contains("_total"), query.contains("rate("), "{title}: {query}");
            }
        }
    }
}

/// The rights in a manifest, and those of the chart's text, which has the words of a template between.
#[test]
fn the_daemon_set_has_the_least_rights() {
    let set = yaml(&text("kustomize/base/daemonset.yaml"));
    let pod = &set["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    let context = &container["securityContext"];
    let list = |value: &Yaml| -> Vec<String> {
        value.as_vec().expect("a list").iter().filter_map(|it| it.as_str().map(str::to_string)).collect()
    };
    assert_eq!(pod["hostPID"].as_bool(), Some(true));
    assert_eq!(pod["automountServiceAccountToken"].as_bool(), Some(false));
    assert!(
        pod["hostNetwork"].is_badvalue()
            && pod["hostIPC"].is_badvalue()
            && context["privileged"].is_badvalue()
    );
    assert_eq!(list(&context["capabilities"]["drop"]), ["ALL"]);
    assert_eq!(list(&context["capabilities"]["add"]), ["SYS_PTRACE", "DAC_READ_SEARCH"]);
    assert_eq!(context["allowPrivilegeEscalation"].as_bool(), Some(false));
    assert_eq!(context["readOnlyRootFilesystem"].as_bool(), Some(true));
    assert_eq!(context["runAsUser"].as_i64(), Some(0));
    assert_eq!(context["seccompProfile"]["type"].as_str(), Some("RuntimeDefault"));
    assert_eq!(context["appArmorProfile"]["type"].as_str(), Some("Unconfined"));
    let mounts = container["volumeMounts"].as_vec().expect("mounts");
    assert!(mounts.iter().all(|it| it["readOnly"].as_bool() == Some(true)));
    assert!(container["resources"]["limits"]["cpu"].is_badvalue());
    let deep = text("kustomize/overlays/deep/kustomization.yaml");
    let added = Regex::new(r"capabilities/add/-\s+value: (\w+)").expect("a pattern");
    let added: Vec<&str> = added.captures_iter(&deep).map(|it| it.get(1).expect("a name").as_str()).collect();
    assert_eq!(added, ["SYS_ADMIN", "PERFMON"]);
    assert!(!deep.contains("privileged") && !deep.contains("/allowPrivilegeEscalation"));
    let chart = text("helm/marusa/templates/daemonset.yaml");
    for line in [
        "add: [SYS_PTRACE, DAC_READ_SEARCH{{ if .Values.deep }}, SYS_ADMIN, PERFMON{{ end }}]",
        "drop: [ALL]",
        "allowPrivilegeEscalation: false",
        "readOnlyRootFilesystem: true",
        "type: RuntimeDefault",
        "automountServiceAccountToken: false",
    ] {
        assert!(chart.contains(line), "{line}");
    }
    assert!(!chart.contains("privileged:") && !chart.contains("hostNetwork"));
    let unit = text("systemd/marusa.service");
    for key in ["AmbientCapabilities", "CapabilityBoundingSet"] {
        assert!(unit.contains(&format!("\n{key}=CAP_SYS_PTRACE CAP_DAC_READ_SEARCH\n")), "{key}");
    }
}

#[test]
fn the_tools_that_read_it_agree() {
    let check = Command::new(root().join("scripts/deploy-check")).output().expect("bash runs");
    let said = String::from_utf8_lossy(&check.stdout);
    said.lines().filter(|line| line.starts_with("skipped: ")).for_each(|line| println!("{line}"));
    assert!(check.status.success(), "{said}{}", String::from_utf8_lossy(&check.stderr));
}
