//! `docs/schema` has the schemas that the program prints; `MARUSA_BLESS=1` writes them anew.

use marusa::show::schemas;
use std::path::Path;

#[test]
fn the_schemas_of_the_documents_are_current() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/schema");
    let files = std::fs::read_dir(&directory).into_iter().flatten().flatten();
    assert!(files.count() <= schemas::ALL.len(), "no schema of a document that there is not");
    for (name, schema) in schemas::ALL {
        let path = directory.join(format!("{name}.json"));
        let now = serde_json::to_string_pretty(&schema()).expect("JSON") + "\n";
        if std::env::var_os("MARUSA_BLESS").is_some() {
            std::fs::write(&path, &now).expect("written");
        }
        let written = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(written == now, "{} is stale: MARUSA_BLESS=1 writes it", path.display());
    }
}
