//! The parts that every network shares (places, organisations, tag classes and tags), and the events of a seed.
//!
//! Tags are numbered by popularity. Every tag has one country in which it is more popular than elsewhere. Elements
//! refer to one another by positions in the lists of [`World`].

use std::collections::HashSet;
use std::ops::Range;

use smol_str::{SmolStr, format_smolstr};

use super::dates::{END, START};
use super::words::{self, TagNaming};
use crate::random::{RandomStream, Weighted, domain};

/// About the number of tags.
const TAG_COUNT: usize = 16_000;
/// The number of cities of all countries, before rounding.
const CITY_COUNT: f64 = 1_300.0;
/// The number of events.
const EVENT_COUNT: u64 = 400;
/// Added to the rank in Zipf's law, so that the first ranks are about equally popular.
const POPULARITY_OFFSET: f64 = 20.0;

pub(super) struct Country {
    pub(super) name: &'static str,
    pub(super) continent: usize,
    pub(super) culture: usize,
    pub(super) languages: Vec<&'static str>,
    pub(super) cities: Range<usize>,
    pub(super) companies: Range<usize>,
    /// The tags that are more popular here than elsewhere, most popular first.
    tags: Vec<u32>,
    tag_weights: Weighted,
}

pub(super) struct City {
    pub(super) name: SmolStr,
    pub(super) country: usize,
    pub(super) universities: Range<usize>,
}

pub(super) struct Organisation {
    pub(super) name: SmolStr,
    /// The number of the country of a company, or of the city of a university.
    pub(super) place: usize,
}

pub(super) struct TagClass {
    pub(super) name: &'static str,
    pub(super) parent: Option<usize>,
}

pub(super) struct Tag {
    pub(super) name: SmolStr,
    pub(super) class: usize,
}

pub(super) struct CultureNames {
    pub(super) men: Vec<&'static str>,
    pub(super) women: Vec<&'static str>,
    pub(super) families: Vec<&'static str>,
}

/// Places, organisations and tags, with the weights that persons are drawn by, and the events.
pub(super) struct World {
    pub(super) countries: Vec<Country>,
    pub(super) country_weights: Weighted,
    pub(super) cities: Vec<City>,
    pub(super) companies: Vec<Organisation>,
    pub(super) universities: Vec<Organisation>,
    pub(super) classes: Vec<TagClass>,
    /// The most popular first.
    pub(super) tags: Vec<Tag>,
    tag_weights: Weighted,
    /// By tag: the dates of its events, ascending.
    pub(super) events: Vec<Vec<i64>>,
    pub(super) cultures: Vec<CultureNames>,
    pub(super) words: Vec<&'static str>,
    pub(super) browsers: Weighted,
}

/// The entries of a word list.
fn list(text: &'static str) -> Vec<&'static str> {
    text.split_whitespace().collect()
}

impl World {
    /// The world. Only the events depend on the seed.
    pub(super) fn new(seed: u64) -> Self {
        let cultures: Vec<CultureNames> = words::CULTURES
            .iter()
            .map(|c| CultureNames { men: list(c.men), women: list(c.women), families: list(c.families) })
            .collect();
        let (classes, tags) = tags(&cultures);
        let (cities, city_ranges) = cities();
        let (companies, company_ranges) = companies();
        let universities = universities(&cities);
        let cities = cities
            .into_iter()
            .enumerate()
            .map(|(at, (name, country))| {
                let kinds = words::UNIVERSITY_KINDS.len();
                City { name, country, universities: at * kinds..(at + 1) * kinds }
            })
            .collect();
        let weights: Vec<f64> = words::COUNTRIES.iter().map(|country| country.weight).collect();
        let country_weights = Weighted::new(&weights);
        let countries =
            words::COUNTRIES.iter().zip(city_ranges).zip(company_ranges).zip(local_tags(&country_weights, tags.len()));
        let countries = countries
            .map(|(((entry, cities), companies), tags)| Country {
                name: entry.name,
                continent: entry.continent,
                culture: entry.culture,
                languages: list(entry.languages),
                cities,
                companies,
                tag_weights: popularity(tags.len()),
                tags,
            })
            .collect();
        let tag_weights = popularity(tags.len());
        let events = events(seed, &tag_weights, tags.len());
        let browsers = Weighted::new(&words::BROWSERS.map(|(_, weight)| weight));
        let words = list(words::WORDS);
        World {
            countries,
            country_weights,
            cities,
            companies,
            universities,
            classes,
            tags,
            tag_weights,
            events,
            cultures,
            words,
            browsers,
        }
    }

    /// Draws a tag that a person of a country likes: often one that is more popular there than elsewhere.
    pub(super) fn liked_tag(&self, country: usize, random: &mut RandomStream) -> u32 {
        let country = &self.countries[country];
        match random.chance(0.4) {
            true => country.tags[country.tag_weights.draw(random)],
            false => self.tag_weights.draw(random) as u32,
        }
    }
}

/// The weights of `count` tags by Zipf's law, most popular first.
fn popularity(count: usize) -> Weighted {
    Weighted::new(&(0..count).map(|rank| 1.0 / (rank as f64 + POPULARITY_OFFSET)).collect::<Vec<_>>())
}

/// Cities with the numbers of their countries, and by country the range of its cities.
fn cities() -> (Vec<(SmolStr, usize)>, Vec<Range<usize>>) {
    let prefixes = list(words::CITY_PREFIXES);
    let size = |country: &words::CountryEntry| country.weight.sqrt();
    let total: f64 = words::COUNTRIES.iter().map(size).sum();
    let (mut cities, mut ranges) = (Vec::new(), Vec::new());
    for (at, country) in words::COUNTRIES.iter().enumerate() {
        let own = list(country.cities);
        let count = ((CITY_COUNT * size(country) / total) as usize).clamp(own.len(), own.len() * (prefixes.len() + 1));
        let begin = cities.len();
        let derived = prefixes.iter().flat_map(|prefix| own.iter().map(move |city| format_smolstr!("{prefix}_{city}")));
        let names = own.iter().map(|city| SmolStr::new_static(city)).chain(derived);
        cities.extend(names.take(count).map(|name| (name, at)));
        ranges.push(begin..cities.len());
    }
    (cities, ranges)
}

/// Companies, and by country the range of its companies.
fn companies() -> (Vec<Organisation>, Vec<Range<usize>>) {
    let kinds = list(words::COMPANY_KINDS);
    let mut companies = Vec::new();
    let mut ranges = Vec::new();
    for (place, country) in words::COUNTRIES.iter().enumerate() {
        let begin = companies.len();
        companies
            .extend(kinds.iter().map(|kind| Organisation { name: format_smolstr!("{}_{kind}", country.name), place }));
        ranges.push(begin..companies.len());
    }
    (companies, ranges)
}

/// Universities, as many in each city, in the order of the cities.
fn universities(cities: &[(SmolStr, usize)]) -> Vec<Organisation> {
    let named = |place: usize, name: &str, kind: &str| Organisation { name: kind.replace('%', name).into(), place };
    let of =
        |(place, (name, _)): (usize, &(SmolStr, usize))| words::UNIVERSITY_KINDS.map(|kind| named(place, name, kind));
    cities.iter().enumerate().flat_map(of).collect()
}

/// The tag classes, and the tags, most popular first.
fn tags(cultures: &[CultureNames]) -> (Vec<TagClass>, Vec<Tag>) {
    let position = |name: &str| words::CLASSES.iter().position(|class| class.0 == name);
    let classes = words::CLASSES.iter().map(|class| TagClass { name: class.0, parent: position(class.1) }).collect();
    // The world is the same for all seeds.
    let mut random = RandomStream::new(domain(0, 0), 0);
    let mut taken: HashSet<SmolStr> = HashSet::new();
    let mut tags: Vec<(f64, Tag)> = Vec::new();
    let (adjectives, nouns) = (list(words::ADJECTIVES), list(words::NOUNS));
    let countries: Vec<SmolStr> = country_names();
    for (class, &(_, _, share, popularity, naming)) in words::CLASSES.iter().enumerate() {
        for number in 0..share * TAG_COUNT / 1000 {
            let name = match naming {
                TagNaming::Nothing => break,
                TagNaming::Country => match countries.get(number) {
                    Some(name) => name.clone(),
                    None => break,
                },
                TagNaming::Person => {
                    let names = &cultures[random.index(cultures.len())];
                    let first = if random.chance(0.6) { random.pick(&names.men) } else { random.pick(&names.women) };
                    format_smolstr!("{first}_{}", random.pick(&names.families))
                }
                TagNaming::Title => match random.chance(0.5) {
                    true => format_smolstr!("{}_{}", random.pick(&adjectives), random.pick(&nouns)),
                    false => format_smolstr!(
                        "{}_of_the_{}_{}",
                        random.pick(&nouns),
                        random.pick(&adjectives),
                        random.pick(&nouns)
                    ),
                },
            };
            let mut names = (1..).map(|n| if n == 1 { name.clone() } else { format_smolstr!("{name}_({n})") });
            let name = names.find(|name| taken.insert(name.clone())).expect("one of endlessly many names is free");
            tags.push((random.unit() / popularity, Tag { name, class }));
        }
    }
    tags.sort_by(|(left, _), (right, _)| left.total_cmp(right));
    (classes, tags.into_iter().map(|(_, tag)| tag).collect())
}

/// Names of countries, then names of former countries.
fn country_names() -> Vec<SmolStr> {
    let forms = list(words::COUNTRY_FORMS);
    let former =
        forms.iter().flat_map(|form| words::COUNTRIES.iter().map(move |c| format_smolstr!("{form}_{}", c.name)));
    words::COUNTRIES.iter().map(|country| SmolStr::new_static(country.name)).chain(former).collect()
}

/// By country: the tags that are more popular there than elsewhere, most popular first.
fn local_tags(countries: &Weighted, count: usize) -> Vec<Vec<u32>> {
    let mut local: Vec<Vec<u32>> = vec![Vec::new(); words::COUNTRIES.len()];
    let mut random = RandomStream::new(domain(0, 1), 0);
    // Half of the tags ignore the weights of countries, so that a small country gets some, too.
    (0..count as u32).for_each(|tag| {
        let country =
            if random.chance(0.5) { countries.draw(&mut random) } else { random.index(words::COUNTRIES.len()) };
        local[country].push(tag);
    });
    local
}

/// By tag: the dates of its events, ascending. Popular tags have more events.
fn events(seed: u64, tags: &Weighted, tag_count: usize) -> Vec<Vec<i64>> {
    let mut random = RandomStream::new(domain(seed, super::EVENTS), 0);
    let mut events = vec![Vec::new(); tag_count];
    for _ in 0..EVENT_COUNT {
        events[tags.draw(&mut random)].push(random.between(START, END - 1));
    }
    events.iter_mut().for_each(|times| times.sort_unstable());
    events
}
