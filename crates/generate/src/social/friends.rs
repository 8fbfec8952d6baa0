//! The friendships of the network.
//!
//! Persons find friends along three dimensions: place (home and university), interest, and chance. For each dimension,
//! persons are sorted into a line, similar ones side by side. A person looks for friends a short way up the line, until
//! the person has the number wanted in this dimension. That makes communities and many triangles.
//!
//! A line is cut into blocks, and both friends of a pair are in one block. So each block is made on its own, from a
//! random stream of its own, and the friendships do not depend on the number of threads.

use std::ops::Range;

use mangrove::Result;

use super::dates::{DAY, END};
use super::people::{Person, friends_wanted};
use crate::parallel::in_order;
use crate::random::{RandomStream, domain, mix};

/// The shares of the dimensions in the friends wanted: place, interest, chance.
const SHARES: [f64; 3] = [0.45, 0.45, 0.10];
/// Persons of one block of a line.
const BLOCK: usize = 4096;
/// The mean distance of a friend in the line. A person who wants more friends than this looks further: as far as that
/// number.
const REACH: f64 = 10.0;
/// Attempts to find a friend, for each friend wanted.
const ATTEMPTS: u32 = 4;

/// The friends of every person, with the date of the friendship. A friendship is listed at both persons.
pub(super) struct Friends {
    /// By person: where the friends begin. One entry more than persons.
    offsets: Vec<usize>,
    friends: Vec<(u32, i64)>,
}

impl Friends {
    /// The friends of a person, with dates, by ascending number.
    pub(super) fn of(&self, person: usize) -> &[(u32, i64)] {
        &self.friends[self.range(person)]
    }

    fn range(&self, person: usize) -> Range<usize> {
        self.offsets[person]..self.offsets[person + 1]
    }

    /// The friendships of these persons with persons of higher numbers, each with its date: ascending by the lower
    /// number.
    pub(super) fn pairs(&self, people: Range<usize>) -> impl Iterator<Item = (u32, u32, i64)> {
        let of = |person: usize| self.of(person).iter().map(move |(friend, date)| (person as u32, *friend, *date));
        people.flat_map(of).filter(|(person, friend, _)| person < friend)
    }
}

/// Finds friends for all persons.
pub(super) fn friends(people: &[Person], seed: u64, threads: usize) -> Result<Friends> {
    let lines = [0, 1, 2].map(|dimension| line(people, seed, dimension));
    let wanted: Vec<u32> = (0..people.len() as u64)
        .map(|person| friends_wanted(&mut RandomStream::new(domain(seed, super::WANTED), person), people.len() as u64))
        .collect();
    let blocks = people.len().div_ceil(BLOCK);
    let make = |chunk: usize| {
        let (dimension, block) = (chunk / blocks, chunk % blocks);
        let line = &lines[dimension][block * BLOCK..people.len().min((block + 1) * BLOCK)];
        let mut random = RandomStream::new(domain(seed, super::FRIENDS), chunk as u64);
        meet(line, |person| share(wanted[person as usize], dimension, person), &mut random)
    };
    let mut pairs: Vec<(u32, u32)> = Vec::new();
    in_order(threads, SHARES.len() * blocks, make, |_, found| {
        pairs.extend(found);
        Ok(())
    })?;
    pairs.sort_unstable();
    pairs.dedup();
    Ok(both_ways(people, &pairs, seed))
}

/// The numbers of all persons in the order of one dimension.
fn line(people: &[Person], seed: u64, dimension: u64) -> Vec<u32> {
    let key = |person: &u32| {
        let p = &people[*person as usize];
        let chance = mix(seed ^ dimension << 32 ^ u64::from(*person));
        match dimension {
            0 => {
                let (university, class) = p.study.unwrap_or((u32::MAX, 0));
                (p.country as u64, p.city as u64, u64::from(university), class as u64, chance)
            }
            1 => (u64::from(p.interests[0]), p.country as u64, 0, 0, chance),
            _ => (chance, 0, 0, 0, 0),
        }
    };
    let mut line: Vec<u32> = (0..people.len() as u32).collect();
    line.sort_by_cached_key(key);
    line
}

/// The number of friends that a person wants in one dimension, rounded up or down by chance.
fn share(wanted: u32, dimension: usize, person: u32) -> u32 {
    let exact = f64::from(wanted) * SHARES[dimension];
    let chance = (mix(u64::from(person) ^ (dimension as u64 + 7) << 40) >> 11) as f64 / (1_u64 << 53) as f64;
    (exact + chance) as u32
}

/// Finds the pairs of friends in a block of a line. A pair has the lower number first.
fn meet(line: &[u32], wanted: impl Fn(u32) -> u32, random: &mut RandomStream) -> Vec<(u32, u32)> {
    let mut left: Vec<u32> = line.iter().map(|&person| wanted(person)).collect();
    let mut pairs = Vec::new();
    for at in 0..line.len() {
        let begin = pairs.len();
        let reach = REACH.max(f64::from(left[at]));
        for _ in 0..left[at] * ATTEMPTS {
            let other = at + 1 + random.geometric(reach) as usize;
            if left[at] == 0 {
                break;
            }
            let Some(&friend) = line.get(other).filter(|_| left[other] > 0) else { continue };
            let pair = (line[at].min(friend), line[at].max(friend));
            if !pairs[begin..].contains(&pair) {
                pairs.push(pair);
                left[at] -= 1;
                left[other] -= 1;
            }
        }
    }
    pairs
}

/// Lists every pair at both persons, with a date after both have joined; early dates are more likely.
fn both_ways(people: &[Person], pairs: &[(u32, u32)], seed: u64) -> Friends {
    let key = domain(seed, super::MEETINGS);
    let mut offsets = vec![0; people.len() + 1];
    for (one, other) in pairs {
        offsets[*one as usize + 1] += 1;
        offsets[*other as usize + 1] += 1;
    }
    (0..people.len()).for_each(|person| offsets[person + 1] += offsets[person]);
    let mut next = offsets.clone();
    let mut friends = vec![(0, 0); pairs.len() * 2];
    for &(one, other) in pairs {
        let mut random = RandomStream::new(key, u64::from(one) << 32 | u64::from(other));
        let from = people[one as usize].created.max(people[other as usize].created) + DAY;
        let soon = random.unit();
        let date = from + (soon * soon * (END - DAY - from) as f64) as i64;
        for (person, friend) in [(one, other), (other, one)] {
            friends[next[person as usize]] = (friend, date);
            next[person as usize] += 1;
        }
    }
    for person in 0..people.len() {
        friends[offsets[person]..offsets[person + 1]].sort_unstable();
    }
    Friends { offsets, friends }
}
