use super::*;

/// Every tag is closed, in the order in which they were opened.
fn is_well_formed(text: &str) {
    let mut open = Vec::new();
    for tag in text.split('<').skip(1) {
        let (tag, _) = tag.split_once('>').unwrap_or_else(|| panic!("'<{tag}' is not closed"));
        let name = tag.trim_start_matches('/').split([' ', '/']).next().unwrap_or_default();
        match (tag.starts_with('/'), tag.ends_with('/')) {
            (true, _) => assert_eq!(open.pop(), Some(name), "{text}"),
            (false, false) => open.push(name),
            _ => {}
        }
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
    }
    assert!(open.is_empty(), "{open:?}");
    assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
}

fn dots(values: &[f64]) -> Vec<Dot> {
    values
        .iter()
        .map(|value| Dot { value: *value, tip: "trial <1>".to_string(), is_hollow: *value < 0.0 })
        .collect()
}

#[test]
fn every_plot_is_well_formed_whatever_it_is_given() {
    let odd = [vec![], vec![1.0], vec![3.0, 3.0, 3.0], vec![-1.0, f64::NAN, 5.0, f64::INFINITY]];
    for values in odd {
        let span = Some(Span { estimate: 1.0, low: 0.5, high: 2.0 });
        let row = Row {
            name: "a<b>&\"c\"".to_string(),
            index: 9,
            dots: dots(&values),
            span,
            note: "1 ± 2".to_string(),
        };
        is_well_formed(&rows(Room::HALF, "A \"title\" <script>", "s", &[row], Some(0.0)));
        let points: Vec<(f64, f64)> =
            values.iter().enumerate().map(|(at, value)| (at as f64, *value)).collect();
        let series = Series {
            name: "a".to_string(),
            index: 2,
            points: points.clone(),
            hollow: points,
            is_joined: true,
        };
        is_well_formed(&lines("t", "trial", "s", &[series], true));
        let times: Vec<f64> = (0..values.len()).map(|at| at as f64).collect();
        let layers: Vec<Layer> = (0..20)
            .map(|at| Layer { name: format!("layer {at}"), values: values.clone(), fill: None })
            .collect();
        is_well_formed(&stacked("t", "s", "MiB", &times, &layers));
        is_well_formed(&stacked("t", "s", "MiB", &times, &[]));
    }
    is_well_formed(&rows(Room::HALF, "none", "s", &[], None));
}

#[test]
fn text_can_not_leave_its_place() {
    assert_eq!(escaped("<b a='x' c=\"y\">&\x1b"), "&lt;b a=&#39;x&#39; c=&quot;y&quot;&gt;&amp;\\u001b");
    let plot = rows(Room::HALF, "</svg><script>alert(1)</script>", "\" onload=\"x", &[], None);
    assert!(!plot.contains("<script") && !plot.contains("onload=\"x\""), "{plot}");
}

#[test]
fn layers_lie_on_each_other() {
    let layers = [("a", vec![1.0, 2.0]), ("b", vec![3.0])].map(|(name, values)| Layer {
        name: name.to_string(),
        values,
        fill: None,
    });
    let plot = stacked("t", "s", "MiB", &[0.0, 1.0], &layers);
    assert_eq!(plot.matches("<polygon").count(), 2);
    assert!(
        plot.find(">b</text>").expect("b") < plot.find(">a</text>").expect("a"),
        "the legend is as they lie"
    );
}

#[test]
fn plots_of_as_much_as_there_is_in_life() {
    let times: Vec<f64> = (0..60).map(f64::from).collect();
    let layer = |index: usize| {
        let values =
            times.iter().map(|time| 20.0 + 10.0 * (time / 9.0 + index as f64).sin() + 3.0 * index as f64);
        Layer { name: format!("area {index}"), values: values.collect(), fill: None }
    };
    let layers: Vec<Layer> = (0..14).map(layer).collect();
    let points = |index: usize| {
        times.iter().map(|time| (*time, 100.0 / (1.0 + time * index as f64 / 9.0) + 20.0)).collect()
    };
    let series: Vec<Series> = (1..4)
        .map(|index| Series {
            name: format!("arm {index}"),
            index,
            points: points(index),
            hollow: Vec::new(),
            is_joined: true,
        })
        .collect();
    let plots = [
        stacked("Resident by area", "seconds", "MiB", &times, &layers),
        lines("Warm-up", "iteration", "ms", &series, true),
    ];
    plots.iter().for_each(|plot| is_well_formed(plot));
}
