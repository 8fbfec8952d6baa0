//! Makes persons: home, dates, interests, studies and work.
//!
//! A person depends on the random numbers of its own stream only. The order in which they are drawn is part of the
//! network: another order gives other persons for the same seed.
//!
//! Correlations: names and languages depend on the country, universities and companies are mostly of the country, and
//! so is a part of the interests.

use smol_str::{SmolStr, format_smolstr};

use super::dates::{BIRTHDAYS_FROM, BIRTHDAYS_TO, DAY, END, START, dated_id, year};
use super::words;
use super::world::World;
use crate::random::{RandomStream, exp};

/// Interests of a person, on average and at most.
const INTERESTS_MEAN: f64 = 23.0;
const INTERESTS_MAX: usize = 80;

/// Scales the number of friends wanted, so that the number found agrees with LDBC's data.
const WANTED_SCALE: f64 = 0.9;

/// The latest date at which a person joins: early enough for activity before the end.
const LATEST_JOIN: i64 = END - 30 * DAY;

/// A person. Countries, cities, tags and organisations are positions in the lists of [`World`]; dates are milliseconds
/// since 1970.
pub(super) struct Person {
    pub(super) id: i64,
    pub(super) first_name: &'static str,
    pub(super) last_name: &'static str,
    pub(super) female: bool,
    pub(super) birthday: i64,
    pub(super) created: i64,
    pub(super) country: usize,
    pub(super) city: usize,
    /// The random part of the person's IP addresses.
    pub(super) address: u32,
    pub(super) browser: u8,
    pub(super) languages: Vec<&'static str>,
    /// The number of mail addresses.
    pub(super) emails: usize,
    /// Distinct tags, by number.
    pub(super) interests: Vec<u32>,
    /// The number of the university, and the year of the class.
    pub(super) study: Option<(u32, i32)>,
    /// The numbers of distinct companies, each with the year in which the work began.
    pub(super) work: Vec<(u32, i32)>,
}

/// Makes the person with this number.
pub(super) fn person(world: &World, random: &mut RandomStream, number: u64) -> Person {
    let country = world.country_weights.draw(random);
    let home = &world.countries[country];
    let names = &world.cultures[home.culture];
    let female = random.chance(0.5);
    let created = START + random.below((LATEST_JOIN - START) as u64) as i64;
    let birthday = random.between(BIRTHDAYS_FROM, BIRTHDAYS_TO) / DAY * DAY;
    let city = home.cities.start + skewed(random, home.cities.len());
    let mut languages = home.languages.clone();
    if !languages.contains(&"en") && random.chance(0.5) {
        languages.push("en");
    }
    let study = random.chance(0.8).then(|| study(world, random, country, city, birthday));
    Person {
        id: dated_id(created, number),
        first_name: name(random, if female { &names.women } else { &names.men }),
        last_name: name(random, &names.families),
        female,
        birthday,
        created,
        country,
        city,
        address: random.bits() as u32,
        browser: world.browsers.draw(random) as u8,
        languages,
        emails: 1 + random.index(4),
        interests: interests(world, random, country),
        study,
        work: work(world, random, country, birthday, study),
    }
}

impl Person {
    /// The IP address from which the person writes in a country. Its first byte depends on the country.
    pub(super) fn address_in(&self, country: usize) -> SmolStr {
        let [.., a, b, c] = self.address.to_be_bytes();
        format_smolstr!("{}.{a}.{b}.{c}", 11 + 3 * country)
    }

    pub(super) fn browser_name(&self) -> SmolStr {
        SmolStr::new_static(words::BROWSERS[usize::from(self.browser)].0)
    }

    /// The mail address with this number. The addresses of a person differ, since there are more hosts than addresses.
    pub(super) fn email(&self, number: usize) -> SmolStr {
        format_smolstr!("{}{}@{}", self.first_name, self.id, words::MAIL_HOSTS[number % words::MAIL_HOSTS.len()])
    }
}

/// Draws a position below `count`; the first positions are the most likely.
fn skewed(random: &mut RandomStream, count: usize) -> usize {
    let unit = random.unit();
    (unit * unit * count as f64) as usize
}

/// Draws a name; the first names of the list are the most common.
fn name(random: &mut RandomStream, names: &[&'static str]) -> &'static str {
    names[skewed(random, names.len())]
}

/// Draws distinct tags that a person of a country likes.
fn interests(world: &World, random: &mut RandomStream, country: usize) -> Vec<u32> {
    let count = (random.exponential(INTERESTS_MEAN) as usize).clamp(1, INTERESTS_MAX);
    let mut interests: Vec<u32> = Vec::with_capacity(count);
    while interests.len() < count {
        let tag = world.liked_tag(country, random);
        if !interests.contains(&tag) {
            interests.push(tag);
        }
    }
    interests
}

/// Draws a university, mostly of the person's city or country, and the year of the class.
fn study(world: &World, random: &mut RandomStream, country: usize, city: usize, birthday: i64) -> (u32, i32) {
    let home = &world.countries[country];
    let city = if random.chance(0.6) { city } else { home.cities.start + skewed(random, home.cities.len()) };
    let city = if random.chance(0.95) { city } else { random.index(world.cities.len()) };
    let universities = &world.cities[city].universities;
    let university = universities.start + skewed(random, universities.len());
    (university as u32, year(birthday) + random.between(20, 23) as i32)
}

/// Draws distinct companies, mostly of the person's country, each with the year in which the work began: at the end of
/// studies or up to four years later, and not after 2012.
fn work(
    world: &World,
    random: &mut RandomStream,
    country: usize,
    birthday: i64,
    study: Option<(u32, i32)>,
) -> Vec<(u32, i32)> {
    let from = study.map_or(year(birthday) + 18, |(_, class)| class);
    let mut work: Vec<(u32, i32)> = Vec::new();
    for _ in 0..random.index(5) {
        let country = if random.chance(0.9) { country } else { world.country_weights.draw(random) };
        let companies = &world.countries[country].companies;
        let company = (companies.start + skewed(random, companies.len())) as u32;
        if work.iter().all(|(other, _)| *other != company) {
            work.push((company, (from + random.between(0, 4) as i32).min(2012)));
        }
    }
    work
}

/// Draws the number of friends that a person wants in a network of `count` persons.
pub(super) fn friends_wanted(random: &mut RandomStream, count: u64) -> u32 {
    let most = (count - 1).min(1000) as f64;
    random.lognormal(friends_mean(count), 1.0).min(most).max(1.0) as u32
}

/// The mean number of friends, which grows with the network as measured on a large one: n^(0.512 - 0.028 log10 n).
pub(super) fn friends_mean(count: u64) -> f64 {
    let log = crate::random::ln(count as f64);
    WANTED_SCALE * exp(log * (0.512 - 0.028 * log / std::f64::consts::LN_10))
}
