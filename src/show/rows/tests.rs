use super::*;
use crate::record::made_up::small;
use ::parquet::file::reader::{FileReader, SerializedFileReader};
use ::parquet::record::RowAccessor;
use serde_json::json;

#[test]
fn csv_has_a_line_a_row_and_names_are_quoted() {
    let mut out = Vec::new();
    csv(&mut out, &small()).expect("memory");
    let text = String::from_utf8(out).expect("text");
    // The name of the JVM has a line's end in it.
    let lines: Vec<&str> = text.split("\n1970").collect();
    assert_eq!(lines.len(), 6, "{text}");
    assert!(lines[0].starts_with("time,steady_ms,pid,main,subject,area,name,account_age_ms,reserved_bytes,"));
    assert!(lines[1].starts_with("-01-01T00:00:01.000Z,0,7,\"<b>\"\"x\"\",\n"), "{}", lines[1]);
    assert!(!text.contains('\u{1b}') && text.contains("\\u001b[2J"), "{text}");
    let commas = lines[0].matches(',').count();
    assert_eq!(lines[1].matches(',').count(), commas + 1, "one within quotes");
}

#[test]
fn json_lines_are_objects_without_what_is_not_known() {
    let mut out = Vec::new();
    json_lines(&mut out, &small()).expect("memory");
    let text = String::from_utf8(out).expect("text");
    let objects: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("an object")).collect();
    assert_eq!(objects.len(), 5);
    assert_eq!((&objects[1]["area"], &objects[1]["resident_bytes"]), (&json!("java_heap"), &json!(300)));
    assert!(objects[1].get("heap_used_bytes").is_none());
    assert_eq!(objects[0]["main"], "<b>\"x\",\n\u{1b}[2J");
    assert_eq!(objects[4]["account_age_ms"], 1000);
}

#[test]
fn parquet_is_read_back() {
    let mut out = Vec::new();
    parquet::write(&mut out, &small()).expect("memory");
    let reader = SerializedFileReader::new(bytes::Bytes::from(out)).expect("a file");
    let rows: Vec<_> = reader.get_row_iter(None).expect("rows").map(|row| row.expect("a row")).collect();
    assert_eq!(rows.len(), 5);
    let names: Vec<String> = rows[1].get_column_iter().map(|(name, _)| name.clone()).collect();
    let at = |name: &str| names.iter().position(|known| known == name).expect("a column");
    assert_eq!(rows[1].get_string(at("area")).ok().map(String::as_str), Some("java_heap"));
    assert_eq!(rows[1].get_long(at("resident_bytes")).ok(), Some(300));
    assert!(rows[1].get_long(at("heap_used_bytes")).is_err(), "absent is not zero");
    assert_eq!(rows[4].get_long(at("kernel_resident_bytes")).ok(), Some(510));
    assert_eq!(rows[0].get_timestamp_millis(at("time")).ok(), Some(1000));
}
