//! Samples of neighbors, one edge after another.

use hashbrown::{HashMap, HashSet};

use crate::random::Random;
use crate::sampling::{
    InRow, InRows, Sample, SamplerOptions, Seeds, Temporal, TemporalOf, TemporalStrategy, row_random,
};

/// A sample by lists and maps, with the random numbers of the sampler.
pub fn sample(graph: &impl InRows, options: &SamplerOptions, batch: u64, seeds: &[Seeds<'_>]) -> Sample {
    let (types, edge_types) = (graph.vertex_types(), graph.edge_types());
    let mut found = Sample {
        vertices: vec![Vec::new(); types],
        sources: vec![Vec::new(); edge_types],
        targets: vec![Vec::new(); edge_types],
        edges: vec![Vec::new(); edge_types],
        trees: options.disjoint.then(|| vec![Vec::new(); types]),
        vertices_of_hops: vec![Vec::new(); types],
        edges_of_hops: vec![Vec::new(); edge_types],
    };
    let (mut locals, mut times) = (HashMap::new(), Vec::new());
    // By type, tree and position of each vertex.
    let mut met: Vec<Vec<(u32, u32)>> = vec![Vec::new(); types];
    let mut tree = 0;
    for of in seeds {
        let mut positions = Vec::new();
        graph.append_positions(of.vertex_type, of.numbers, &mut positions).expect("the seeds exist");
        for (at, position) in positions.into_iter().enumerate() {
            let of_seed = if options.disjoint { tree } else { 0 };
            let local = met[of.vertex_type].len();
            locals.entry((of.vertex_type, of_seed, position)).or_insert(local);
            met[of.vertex_type].push((of_seed, position));
            let own = || graph.vertex_times(of.vertex_type).map_or(i64::MAX, |times| times[position as usize]);
            times.push(of.times.map_or_else(own, |times| times[at]));
            tree += 1;
        }
    }
    let mut begins = vec![0; types];
    (0..types).for_each(|at| found.vertices_of_hops[at].push(met[at].len()));
    for hop in 0..options.fanouts.first().map_or(0, Vec::len) {
        let ends: Vec<usize> = met.iter().map(Vec::len).collect();
        for edge_type in 0..edge_types {
            let (source, target) = graph.ends(edge_type);
            let before = found.edges[edge_type].len();
            for local in begins[target]..ends[target] {
                let (tree, position) = met[target][local];
                let mut row = Vec::new();
                graph.append_rows(edge_type, &[position], &mut row).expect("the row is in memory");
                let of_hop = Random::new(options.seed).of(batch).of((hop as u64) << 32 | edge_type as u64);
                let time = times.get(tree as usize).copied().unwrap_or(i64::MAX);
                let count = options.fanouts[edge_type][hop];
                let random = row_random(of_hop, tree, position);
                for place in taken(options, count, &row[0], graph.vertex_times(source), time, random) {
                    let of_source = row[0].sources[place];
                    let next = met[source].len();
                    let number = *locals.entry((source, tree, of_source)).or_insert(next);
                    if number == next {
                        met[source].push((tree, of_source));
                    }
                    found.sources[edge_type].push(number as i64);
                    found.targets[edge_type].push(local as i64);
                    found.edges[edge_type].push(row[0].first_edge as i64 + place as i64);
                }
            }
            let count = found.edges[edge_type].len() - before;
            found.edges_of_hops[edge_type].push(count);
        }
        for at in 0..types {
            found.vertices_of_hops[at].push(met[at].len() - ends[at]);
        }
        begins = ends;
    }
    for (at, met) in met.iter().enumerate() {
        let positions: Vec<u32> = met.iter().map(|(_, position)| *position).collect();
        graph.append_numbers(at, &positions, &mut found.vertices[at]);
        if let Some(trees) = &mut found.trees {
            trees[at] = met.iter().map(|(tree, _)| i64::from(*tree)).collect();
        }
    }
    found
}

/// The places of a row that are taken.
fn taken(
    options: &SamplerOptions,
    count: Option<usize>,
    row: &InRow<'_>,
    source_times: Option<&[i64]>,
    time: i64,
    random: Random,
) -> Vec<usize> {
    let of_place = |place: usize| match options.temporal {
        Some(Temporal { of: TemporalOf::Edges, .. }) => row.times.get(place).copied(),
        Some(Temporal { of: TemporalOf::Vertices, .. }) => source_times.map(|times| times[row.sources[place] as usize]),
        None => None,
    };
    let mut candidates: Vec<usize> =
        (0..row.sources.len()).filter(|place| of_place(*place).is_none_or(|of_place| of_place <= time)).collect();
    let is_last = options.temporal.is_some_and(|temporal| temporal.strategy == TemporalStrategy::Last);
    if let Some(count) = count.filter(|count| is_last && *count < candidates.len()) {
        // Without times there is no order, and no last ones.
        if candidates.iter().any(|place| of_place(*place).is_some()) {
            candidates.sort_by_key(|place| of_place(*place));
            candidates.drain(..candidates.len() - count);
        }
    }
    let weights: Option<Vec<f64>> = (options.weighted && !row.weights.is_empty())
        .then(|| candidates.iter().map(|place| row.weights[*place]).collect());
    let drawn = match weights {
        Some(weights) => weighted(&weights, count, options.replace, random),
        None => uniform(candidates.len(), count, options.replace, random),
    };
    drawn.into_iter().map(|at| candidates[at]).collect()
}

fn uniform(candidates: usize, count: Option<usize>, replace: bool, random: Random) -> Vec<usize> {
    let mut drawn = Vec::new();
    match count {
        Some(count) if replace && candidates > 0 => {
            drawn.extend((0..count).map(|draw| random.of(draw as u64).below(candidates as u64) as usize));
        }
        Some(count) if count < candidates => {
            let mut taken = HashSet::new();
            for draw in 0..count {
                let last = candidates - count + draw;
                let at = random.of(draw as u64).below(last as u64 + 1) as usize;
                let at = if taken.insert(at) { at } else { last };
                taken.insert(at);
                drawn.push(at);
            }
        }
        _ => drawn.extend(0..candidates),
    }
    drawn
}

fn weighted(weights: &[f64], count: Option<usize>, replace: bool, random: Random) -> Vec<usize> {
    let fit: Vec<usize> = (0..weights.len()).filter(|at| weights[*at] > 0.0).collect();
    let Some(count) = count else { return fit };
    if fit.is_empty() {
        return fit;
    }
    if replace {
        let all = weights.iter().sum::<f64>();
        let of_draw = |draw: usize| {
            let drawn = random.of(draw as u64).unit() * all;
            let mut sum = 0.0;
            let passed = |at: &usize| {
                sum += weights[*at];
                drawn < sum
            };
            (0..weights.len()).find(passed).unwrap_or(fit[fit.len() - 1])
        };
        return (0..count).map(of_draw).collect();
    }
    let mut keys: Vec<(f64, usize)> =
        fit.iter().map(|at| (-(1.0 - random.of(*at as u64).unit()).ln() / weights[*at], *at)).collect();
    keys.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
    let mut drawn: Vec<usize> = keys.iter().take(count).map(|(_, at)| *at).collect();
    drawn.sort_unstable();
    drawn
}
