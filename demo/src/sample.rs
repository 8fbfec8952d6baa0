//! The files of the sample graph: fetched, or generated with the same columns.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use mangrove::Result;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

const FILES: [&str; 3] = ["states.csv", "airports.csv", "routes.csv"];

/// The airports in the traversals, with their cities and states.
const KNOWN: [(&str, &str, &str); 8] = [
    ("ATL", "Atlanta", "GA"),
    ("ORD", "Chicago", "IL"),
    ("DEN", "Denver", "CO"),
    ("SEA", "Seattle", "WA"),
    ("BOI", "Boise", "ID"),
    ("ANC", "Anchorage", "AK"),
    ("HNL", "Honolulu", "HI"),
    ("BGR", "Bangor", "ME"),
];

const STATES: [&str; 12] = ["AK", "CA", "CO", "FL", "GA", "HI", "ID", "IL", "ME", "NY", "TX", "WA"];
const AIRPORTS: usize = 500;
const AIRLINES: [&str; 8] = ["AA", "AS", "B6", "DL", "F9", "HA", "UA", "WN"];
const ROUTES_AN_AIRLINE: usize = 800;
const SEED: u64 = 20_260_101;

/// The files to load.
pub struct Sample {
    files: Vec<PathBuf>,
    is_real: bool,
    /// The folder of generated files, which is removed with the sample.
    generated: Option<PathBuf>,
}

impl Sample {
    /// Takes the files of a folder, or generates them if it has none.
    pub fn find(folder: Option<PathBuf>) -> Result<Self> {
        let files: Vec<PathBuf> = folder.map_or_else(Vec::new, |folder| in_folder(&folder));
        if !files.is_empty() && files.iter().all(|file| file.is_file()) {
            return Ok(Sample { files, is_real: true, generated: None });
        }
        let folder = std::env::temp_dir().join(format!("mangrove-demo-{}", std::process::id()));
        fs::create_dir_all(&folder)?;
        let sample = Sample { files: in_folder(&folder), is_real: false, generated: Some(folder) };
        let texts = generate();
        sample.files.iter().zip(texts).try_for_each(|(file, text)| fs::write(file, text))?;
        Ok(sample)
    }

    /// The files, in no particular order.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// A description of the data for the reader.
    pub fn description(&self) -> &'static str {
        if self.is_real {
            "The graph: airports, airline routes and states of the United States, from the PyPI packages vega_datasets \
             and bokeh_sampledata."
        } else {
            "The graph is GENERATED, in the shape of the real one (airports, airline routes, states): the real one \
             could not be fetched."
        }
    }
}

impl Drop for Sample {
    fn drop(&mut self) {
        if let Some(folder) = &self.generated {
            // If this fails, the folder is removed when the system clears its temporary files.
            let _ = fs::remove_dir_all(folder);
        }
    }
}

fn in_folder(folder: &Path) -> Vec<PathBuf> {
    FILES.map(|name| folder.join(name)).to_vec()
}

/// The texts of the files, in the order of [`FILES`].
fn generate() -> [String; 3] {
    let rng = &mut StdRng::seed_from_u64(SEED);
    let states = STATES.iter().fold("code\n".to_owned(), |text, state| text + state + "\n");
    let codes = airport_codes();
    let mut airports = "iata,name,city,state,country,latitude,longitude\n".to_owned();
    for (at, code) in codes.iter().enumerate() {
        let (city, state) = match KNOWN.get(at) {
            Some((_, city, state)) => ((*city).to_owned(), *state),
            None => (format!("City {at}"), STATES[rng.random_range(0..STATES.len())]),
        };
        let (latitude, longitude) = (rng.random_range(25.0..60.0), rng.random_range(-155.0..-70.0));
        writeln!(airports, "{code},{city} Airport,{city},{state},USA,{latitude:.5},{longitude:.5}")
            .expect("a string takes all text");
    }
    [states, airports, routes(rng, &codes)]
}

fn airport_codes() -> Vec<String> {
    let known = KNOWN.iter().map(|(code, ..)| (*code).to_owned());
    known.chain((KNOWN.len()..AIRPORTS).map(|at| format!("X{at:03}"))).collect()
}

/// Every airline connects the known airports, its hubs, to one another and to any airports, in both directions.
fn routes(rng: &mut StdRng, codes: &[String]) -> String {
    let mut routes =
        "Airline,AirlineID,Source,SourceID,Destination,DestinationID,Codeshare,Stops,Equipment\n".to_owned();
    for airline in AIRLINES {
        let mut pairs = BTreeSet::new();
        // The known airports are hubs of all airlines, so the traversals reach all of them.
        while pairs.len() < ROUTES_AN_AIRLINE {
            let (hub, other) = (rng.random_range(0..KNOWN.len()), rng.random_range(0..codes.len()));
            if hub != other {
                pairs.extend([(hub, other), (other, hub)]);
            }
        }
        for (from, to) in pairs {
            writeln!(routes, "{airline},,{},,{},,,0,", codes[from], codes[to]).expect("a string takes all text");
        }
    }
    routes
}
