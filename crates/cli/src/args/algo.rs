//! The command line of `mangrove algo`.

use std::path::PathBuf;

use clap::Args;

use crate::output::ResultFormat;

/// `mangrove algo`.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub struct AlgoArgs {
    /// The algorithm; without it, print all algorithms with their options
    pub name: Option<String>,

    /// The graph: a directory that no other program has open, s3://BUCKET/DIRECTORY, or file:/PATH
    #[arg(long, value_name = "PLACE", env = "MANGROVE_DATA", conflicts_with = "load", required_unless_present_any = ["load", "list"])]
    pub data: Option<String>,

    /// Load these files into a graph in memory, and run the algorithm on it
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub load: Vec<PathBuf>,

    /// With --load: a mapping, which says what the columns of the files mean
    #[arg(long, value_name = "FILE", requires = "load")]
    pub map: Option<PathBuf>,

    /// An option of the algorithm; may be given several times
    #[arg(short = 'O', long = "option", value_name = "NAME=VALUE")]
    pub options: Vec<String>,

    /// Print all algorithms with their options
    #[arg(long, conflicts_with_all = ["name", "options"])]
    pub list: bool,

    /// Print only so many rows, those with the largest numbers first
    #[arg(long, value_name = "COUNT")]
    pub top: Option<usize>,

    /// The most threads that work on it [default: one for each core]
    #[arg(long, value_name = "COUNT", default_value_t = 0, hide_default_value = true)]
    pub threads: usize,

    /// Write the rows to this file instead of printing them; if it is FILE.parquet, as Parquet
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,

    /// How to print the rows
    #[arg(long, value_enum, default_value_t = ResultFormat::Table)]
    pub format: ResultFormat,
}

const HELP: &str = "\
Prints a row for each vertex that has a value: its id, and the value. Some algorithms print a row for each path,
edge or pair of vertices instead. In options, whole numbers, numbers, true and
false are read as such, [1,2,3] as a list, and other values as text.

Examples:
  mangrove algo --list
  mangrove algo pagerank --data graph/ --top 10
  mangrove algo pagerank --data graph/ -O edges=knows -O damping=0.9 --format csv >ranks.csv
  mangrove algo pagerank --data graph/ --out ranks.parquet
  mangrove algo sssp --data graph/ -O source=1 -O weight=km -O directed=false
  mangrove algo wcc --load people.csv knows.csv --format jsonl";
