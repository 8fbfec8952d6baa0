//! Makes the entities of a knowledge graph: their ids and properties.

use std::collections::BTreeMap;
use std::ops::Range;

use mangrove::{DateTime, Value};
use smol_str::{SmolStr, format_smolstr};

use crate::random::{RandomStream, Weighted, mix};
use crate::sink::{GeneratedColumn, GeneratedValues};
use crate::social::words;

/// Free properties of an ordinary entity, on average.
const PROPERTIES_MEAN: f64 = 10.0;
/// The probability that an entity is rich, and the number of its properties.
const RICH_CHANCE: f64 = 0.01;
const RICH_PROPERTIES: (i64, i64) = (100, 400);
/// The probability that a property has several values, and their maximum number.
const SEVERAL_CHANCE: f64 = 0.12;
const SEVERAL_MAX: usize = 12;
/// The probability that the type of a value is drawn at random, instead of being that of its key.
const OTHER_TYPE_CHANCE: f64 = 0.15;
/// This many of the most frequent keys are the same for all label sets. The others differ between label sets.
const COMMON_KEYS: usize = 20;
/// The maximum number of words of an abstract. The mean is far lower.
const ABSTRACT_WORDS_MAX: u64 = 600;

/// Keys that most entities have.
const LABEL: &str = "label";
const ABSTRACT: &str = "abstract";
const PAGE: &str = "pageId";

/// Makes entities from the keys and words of the graph.
pub(super) struct Entities {
    keys: Vec<SmolStr>,
    weights: Weighted,
    /// The seed of the types of keys.
    types: u64,
    nouns: Vec<&'static str>,
    adjectives: Vec<&'static str>,
    words: Vec<&'static str>,
}

impl Entities {
    pub(super) fn new(keys: usize, types: u64) -> Self {
        let list = |text: &'static str| text.split_whitespace().collect::<Vec<_>>();
        let (nouns, adjectives, words) = (list(words::NOUNS), list(words::ADJECTIVES), list(words::WORDS));
        let key = |n: usize| {
            let (noun, adjective) = (nouns[n % nouns.len()], adjectives[n / nouns.len() % adjectives.len()]);
            let name = format!("{}{noun}", adjective.to_lowercase());
            match n / nouns.len() / adjectives.len() {
                0 => SmolStr::from(name),
                round => format_smolstr!("{name}{round}"),
            }
        };
        let keys: Vec<SmolStr> = (0..keys).map(key).collect();
        let weights = Weighted::zipf(keys.len(), 1.05);
        Entities { keys, weights, types, nouns, adjectives, words }
    }

    /// The ids and the columns of entities of one label set, given by their vertex numbers.
    pub(super) fn make(&self, set: usize, numbers: Range<u64>, seed: u64) -> (Vec<SmolStr>, Vec<GeneratedColumn>) {
        let mut ids = Vec::new();
        let (mut labels, mut pages, mut abstracts) = (Vec::new(), Vec::new(), Vec::new());
        let mut free: BTreeMap<usize, Vec<(u32, Vec<Value>)>> = BTreeMap::new();
        for (row, number) in (0..).zip(numbers) {
            let mut random = RandomStream::new(seed, number);
            let (adjective, noun) = (random.pick(&self.adjectives), random.pick(&self.nouns));
            ids.push(format_smolstr!("{adjective}_{noun}_{number}"));
            labels.push(format_smolstr!("{adjective} {noun}"));
            pages.push((mix(number) >> 32) as i64);
            abstracts.push(random.chance(0.6).then(|| self.text(&mut random)));
            for (key, values) in self.properties(set, &mut random) {
                free.entry(key).or_default().push((row, values));
            }
        }
        let mut columns = vec![
            GeneratedColumn::new(LABEL, GeneratedValues::Text(labels)),
            GeneratedColumn::new(PAGE, GeneratedValues::I64(pages)),
            GeneratedColumn::new(ABSTRACT, GeneratedValues::OptionalText(abstracts)),
        ];
        columns.extend(
            free.into_iter()
                .map(|(key, rows)| GeneratedColumn::new(self.keys[key].clone(), GeneratedValues::Several(rows))),
        );
        (ids, columns)
    }

    /// The free properties of one entity: distinct keys, by position, each with at least one value.
    fn properties(&self, set: usize, random: &mut RandomStream) -> Vec<(usize, Vec<Value>)> {
        let wanted = match random.chance(RICH_CHANCE) {
            true => random.between(RICH_PROPERTIES.0, RICH_PROPERTIES.1) as usize,
            false => random.geometric(PROPERTIES_MEAN) as usize,
        };
        let wanted = wanted.min(self.keys.len() / 2);
        let mut properties: Vec<(usize, Vec<Value>)> = Vec::with_capacity(wanted);
        // Frequent keys are drawn repeatedly, so an entity may get fewer properties than wanted.
        for _ in 0..4 * wanted {
            if properties.len() == wanted {
                break;
            }
            let key = self.key(set, random);
            if properties.iter().all(|(other, _)| *other != key) {
                let count = if random.chance(SEVERAL_CHANCE) { 2 + random.index(SEVERAL_MAX - 1) } else { 1 };
                properties.push((key, (0..count).map(|_| self.value(key, random)).collect()));
            }
        }
        properties
    }

    fn key(&self, set: usize, random: &mut RandomStream) -> usize {
        match self.weights.draw(random) {
            rank if rank < COMMON_KEYS => rank,
            rank => COMMON_KEYS + (rank - COMMON_KEYS + set * 97) % (self.keys.len() - COMMON_KEYS),
        }
    }

    /// A value of the key's usual type, or of another type.
    fn value(&self, key: usize, random: &mut RandomStream) -> Value {
        let own = (mix(self.types ^ key as u64) % 9) as usize;
        let kind = if random.chance(OTHER_TYPE_CHANCE) { random.index(9) } else { own };
        match kind {
            0 | 1 => Value::String(format_smolstr!("{} {}", random.pick(&self.adjectives), random.pick(&self.nouns))),
            2 => Value::I64((random.bits() >> 30) as i64),
            3 => Value::I32(random.between(1000, 2025) as i32),
            4 => Value::F64((random.unit() * 1e6).round() / 1e3),
            5 => Value::Bool(random.chance(0.5)),
            6 => Value::String(self.text(random)),
            7 => Value::DateTime(DateTime::from_epoch_millis(random.between(-2_000_000_000_000, 1_700_000_000_000))),
            _ => {
                let item = |random: &mut RandomStream| Value::string(random.pick(&self.nouns));
                Value::list((0..1 + random.index(4)).map(|_| item(random)).collect())
            }
        }
    }

    /// A text of a few to hundreds of words.
    fn text(&self, random: &mut RandomStream) -> SmolStr {
        let words = 5 + random.lognormal(50.0, 1.2) as u64;
        let mut text = String::new();
        for _ in 0..words.min(ABSTRACT_WORDS_MAX) {
            if !text.is_empty() {
                text.push(' ');
            }
            text.push_str(random.pick(&self.words));
        }
        text.into()
    }
}
