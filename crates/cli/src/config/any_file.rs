//! Random configuration files. Each is refused or understood. If it is understood, the output of `--print-config` means
//! the same.

use std::path::Path;

use mangrove_fuzz::drive::{Effort, Options as Drive, drive};
use mangrove_fuzz::{InputShape, Target};

use super::*;

static TARGET: Target = Target::new("configuration", InputShape::Text(WORDS), run, seeds);

/// The words that mutations try.
const WORDS: &[&str] = &[
    "listen = ",
    "memory_limit = ",
    "evaluation_timeout = ",
    "allowed_origins = ",
    "log = ",
    "load = ",
    "data = ",
    "sources = ",
    "ids = ",
    "[graphs.a]",
    "[graphs.main]",
    "[[graphs]]",
    "\"serializable\"",
    "\"numbers\"",
    "\"none\"",
    "\"memory:\"",
    "\"1GiB\"",
    "\"0s\"",
    "99999999999999999999",
    "-1",
    "1e400",
    "1979-05-27T07:32:00Z",
    "\"\\u0000\"",
    "\"\\u001F\"",
    "\"\"\"",
    "'''",
    "{",
    "}",
    "[",
    "]",
    "\"",
    "=",
    "\n",
    "#",
];

fn seeds() -> Vec<Vec<u8>> {
    let whole = Setup::new(&ServeArgs::default()).expect("the defaults are right").print();
    let texts = [
        whole.as_str(),
        include_str!("../../../../packaging/mangrove.toml"),
        "listen = \"0.0.0.0:8182\"\nallow_remote = true\nload = [\"a.json\", \"b.csv\"]\nslow_query = \"500ms\"\n\
         [graphs.books]\ndata = \"books\"\n[graphs.modern]\nload = [\"modern.json\"]\nmemory_limit = \"2GiB\"\n\
         ids = \"numbers\"\nmap = \"a.toml\"\nsources = { gmodern = \"serializable\", gmodern_si = \"snapshot\" }",
    ];
    texts.map(|text| text.as_bytes().to_vec()).to_vec()
}

/// The setup that a file in a folder gives.
fn setup(text: &str, folder: &Path) -> Result<Setup> {
    let file = ConfigFile::parse(text, folder)?;
    let (mut options, mut origins) = (Options::new(LISTEN_DEFAULT), BTreeMap::new());
    for (setting, value) in &file.settings {
        set(&mut options, setting, value, &Origin::File)?;
        setting.resolve(&mut options, folder);
        origins.insert(setting.name, Origin::File);
    }
    let graphs = with_main(&options, file.load, file.graphs)?;
    Ok(Setup { options, graphs, origins })
}

fn run(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let Ok(mut first) = setup(text, Path::new("/etc/mangrove")) else { return false };
    let printed = first.print();
    // Its paths are whole by now, whatever it is beside.
    let mut again = setup(&printed, Path::new("/elsewhere")).unwrap_or_else(|error| panic!("{error}:\n{printed}"));
    let (left, right) = (again.print(), printed.as_str());
    let differs = values(&left).into_iter().zip(values(right)).find(|(a, b)| a != b);
    assert_eq!((differs, values(&left).len()), (None, values(right).len()));
    true
}

/// A printed file without where its values come from.
fn values(printed: &str) -> Vec<&str> {
    printed.lines().map(|line| line.rsplit_once(" # ").map_or(line, |(value, _)| value).trim_end()).collect()
}

#[test]
fn any_file_is_refused_or_understood_as_what_it_is_printed_as() {
    let options = Drive {
        effort: Effort::from_environment(),
        seed: 1,
        memory: None,
        patience: 20,
        trail: None,
        on_finding: |_, _| {},
    };
    let report = drive(&TARGET, &options);
    for finding in &report.findings {
        println!("{}: {}", finding.harm, String::from_utf8_lossy(&finding.input).escape_debug());
    }
    assert!(report.findings.is_empty(), "{} findings", report.findings.len());
    assert!(report.accepted > 10, "{} of {} files were understood", report.accepted, report.executions);
}
