//! Parameters of queries for generated networks, by the names that the query sets use.
//!
//! - Persons, messages and first names are drawn with a fixed seed. A drawn person has at least one friend.
//! - Ranges of dates are chosen by selectivity: they begin at the median and have a share of all vertices. Grasper's
//!   paper did not publish its parameters, so its shares are 0.01 %, 1 % and 10 %, as in the query set.
//! - The two countries of a query are those with the most messages.

use std::collections::BTreeMap;

use mangrove_generate::random::{RandomStream, mix};
use mangrove_queries::reference::{Graph, Vertex};
use mangrove_queries::{JsonParameters, Query, QuerySet};
use serde_json::{Value as Json, json};

/// The seed of all draws.
const SEED: u64 = 21;

/// Start persons of Banyan's queries, as many as in the paper.
const STARTS: usize = 10;

/// Start persons of walks, and of short reads.
const FEW_STARTS: usize = 3;

/// Start persons of the short reads beside heavy queries.
const MANY_STARTS: usize = 100;

/// The shares of all vertices that Grasper's ranges of dates have.
const SHARES: [f64; 3] = [0.000_1, 0.01, 0.1];

/// The network that parameters are drawn from.
pub struct Drawn<'a> {
    graph: &'a Graph,
    /// Persons with friends, in the order in which they are drawn.
    persons: Vec<Vertex>,
    /// The creation dates of all vertices that have one, ascending.
    dates: Vec<i64>,
    /// The countries by the number of their messages, largest first.
    countries: Vec<String>,
}

impl<'a> Drawn<'a> {
    /// Draws from this network.
    pub fn of(graph: &'a Graph) -> Self {
        let mut random = RandomStream::from_seed(mix(SEED));
        let mut left: Vec<Vertex> =
            graph.of_kind("Person").filter(|person| !graph.friends(*person).is_empty()).collect();
        let mut persons = Vec::new();
        while persons.len() < MANY_STARTS && !left.is_empty() {
            persons.push(left.swap_remove(random.below(left.len() as u64) as usize));
        }
        let mut dates: Vec<i64> =
            (0..graph.vertices.len()).filter_map(|vertex| graph.number(vertex, "creationDate")).collect();
        dates.sort_unstable();
        let mut messages: BTreeMap<Vertex, usize> = BTreeMap::new();
        for message in graph.of_kind("Post").chain(graph.of_kind("Comment")) {
            graph
                .out(message, "isLocatedIn")
                .into_iter()
                .for_each(|country| *messages.entry(country).or_default() += 1);
        }
        let mut countries: Vec<(Vertex, usize)> = messages.into_iter().collect();
        countries.sort_by_key(|(country, count)| (std::cmp::Reverse(*count), *country));
        let countries = countries.into_iter().filter_map(|(country, _)| graph.text(country, "name")).map(str::to_owned);
        Drawn { graph, persons, dates, countries: countries.collect() }
    }

    /// The parameters of a query whose only parameter is its start person, for up to a hundred persons.
    pub fn many_starts(&self) -> Vec<JsonParameters> {
        self.starts(MANY_STARTS, |_| vec![])
    }

    /// The parameters of a query. Empty if the network has nothing to draw from, or the set is not known here.
    pub fn parameters(&self, set: &QuerySet, query: &Query) -> Vec<JsonParameters> {
        match (set.name.as_str(), query.name.as_str()) {
            ("banyan-cq", _) => self.starts(STARTS, |_| vec![]),
            ("patterns", name) if name.contains("-hop") => self.starts(FEW_STARTS, |_| vec![]),
            ("patterns", name) if name.contains(" between") => self.starts(FEW_STARTS, |person| {
                let at = self.persons.iter().position(|drawn| *drawn == person).unwrap_or_default();
                let other = self.persons[(at + FEW_STARTS) % self.persons.len()];
                vec![("other", json!(self.graph.id(other)))]
            }),
            ("patterns" | "lsqb" | "barriers", _) => vec![JsonParameters::new()],
            ("gtran-templates", "IS4") => self.messages(),
            ("gtran-templates", "IC1") => self.starts(FEW_STARTS, |person| vec![("name", self.first_name(person))]),
            ("gtran-templates", "IC2") => self.starts(FEW_STARTS, |_| vec![("date", self.date(0.5))]),
            ("gtran-templates", "IC3") => self.starts(FEW_STARTS, |_| {
                let country = |at: usize| json!(self.countries.get(at));
                let range = [("begin", self.date(0.25)), ("end", self.date(0.75))];
                [("country1", country(0)), ("country2", country(1))].into_iter().chain(range).collect()
            }),
            ("gtran-templates", "IC4") => self.starts(FEW_STARTS, |_| {
                vec![("begin", self.date(0.25)), ("end", self.date(0.75)), ("date", self.date(0.25))]
            }),
            ("gtran-templates", _) => self.starts(FEW_STARTS, |_| vec![]),
            ("grasper", "Q5") => self.years(),
            ("grasper", _) => self.ranges(),
            _ => Vec::new(),
        }
    }

    /// The parameters of LDBC's complex reads IC1 and IC9, except the number of rows. Empty for others.
    pub fn of_ldbc(&self, name: &str) -> Vec<JsonParameters> {
        match name {
            "IC1" => self.starts(STARTS, |person| vec![("firstName", self.first_name(person))]),
            "IC9" => self.starts(STARTS, |_| vec![("maxDate", self.date(0.9))]),
            _ => Vec::new(),
        }
    }

    /// The parameters `person`, and what `others` adds for the person, for the first drawn persons.
    fn starts(&self, count: usize, others: impl Fn(Vertex) -> Vec<(&'static str, Json)>) -> Vec<JsonParameters> {
        let of_person = |person: &Vertex| {
            let others = others(*person).into_iter();
            others
                .chain([("person", json!(self.graph.id(*person)))])
                .map(|(name, value)| (name.into(), value))
                .collect()
        };
        self.persons.iter().take(count).map(of_person).collect()
    }

    /// The first name of a friend of a friend, so that the name is found within three steps.
    fn first_name(&self, person: Vertex) -> Json {
        let friends = self.graph.friends(person).into_iter().flat_map(|friend| self.graph.friends(friend));
        json!(friends.filter_map(|other| self.graph.text(other, "firstName")).next())
    }

    fn messages(&self) -> Vec<JsonParameters> {
        let mut random = RandomStream::from_seed(mix(SEED + 1));
        let messages: Vec<Vertex> = self.graph.of_kind("Post").chain(self.graph.of_kind("Comment")).collect();
        let mut draw = || messages[random.below(messages.len() as u64) as usize];
        let count = if messages.is_empty() { 0 } else { FEW_STARTS };
        (0..count).map(|_| given([("message", json!(self.graph.id(draw())))])).collect()
    }

    /// The creation date below which this share of the vertices with a date lies.
    fn date(&self, quantile: f64) -> Json {
        let last = self.dates.len().saturating_sub(1);
        json!(self.dates.get((last as f64 * quantile) as usize))
    }

    /// Ranges of dates from the median that have [`SHARES`] of all vertices.
    fn ranges(&self) -> Vec<JsonParameters> {
        let middle = self.dates.len() / 2;
        let of_share = |share: &f64| {
            let count = (self.graph.vertices.len() as f64 * share).ceil() as usize;
            let [begin, end] = [middle, middle + count].map(|at| self.dates.get(at).or(self.dates.last()));
            given([("begin", json!(begin)), ("end", json!(end))])
        };
        SHARES.iter().filter(|_| !self.dates.is_empty()).map(of_share).collect()
    }

    /// Ranges of years of work: one, two and ten years from the median.
    fn years(&self) -> Vec<JsonParameters> {
        let years = self.graph.edges.iter().filter_map(|edge| edge.property.as_ref());
        let mut years: Vec<i64> = years.filter(|(key, _)| key == "workFrom").map(|(_, year)| *year).collect();
        years.sort_unstable();
        let median = years.get(years.len() / 2);
        let of_median =
            |begin: &i64| [1, 2, 10].map(|length| given([("begin", json!(begin)), ("end", json!(begin + length))]));
        median.into_iter().flat_map(of_median).collect()
    }
}

fn given<const N: usize>(pairs: [(&str, Json); N]) -> JsonParameters {
    pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
