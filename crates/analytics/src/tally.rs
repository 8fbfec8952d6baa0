//! Sums by small numbers, in a table that is used again and again.

/// Sums of weights by community.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// In the table: the number of an entry, and one more; 0 in free places.
    places: Vec<u32>,
    /// By the order of their first weights: community, sum and place in the table.
    entries: Vec<(u32, f64, u32)>,
}

impl Tally {
    /// Forgets all sums, and has place for so many communities.
    pub(crate) fn clear(&mut self, most: usize) {
        let size = (most * 2).next_power_of_two().max(16);
        if self.places.len() < size {
            self.places.clear();
            self.places.resize(size, 0);
        } else {
            self.entries.iter().for_each(|(_, _, place)| self.places[*place as usize] = 0);
        }
        self.entries.clear();
    }

    /// Adds a weight to the sum of a community.
    #[inline]
    pub(crate) fn add(&mut self, community: u32, weight: f64) {
        let mask = self.places.len() - 1;
        let mut place = self.first_place(community);
        loop {
            match self.places[place] {
                0 => {
                    self.entries.push((community, weight, place as u32));
                    self.places[place] = self.entries.len() as u32;
                    return;
                }
                number => {
                    let (found, sum, _) = &mut self.entries[number as usize - 1];
                    if *found == community {
                        *sum += weight;
                        return;
                    }
                }
            }
            place = (place + 1) & mask;
        }
    }

    /// The sum of a community; 0 if it has no weights.
    #[inline]
    pub(crate) fn get(&self, community: u32) -> f64 {
        let mask = self.places.len() - 1;
        let mut place = self.first_place(community);
        loop {
            match self.places[place] {
                0 => return 0.0,
                number if self.entries[number as usize - 1].0 == community => {
                    return self.entries[number as usize - 1].1;
                }
                _ => place = (place + 1) & mask,
            }
        }
    }

    /// The communities with their sums, in the order of their first weights.
    #[inline]
    pub(crate) fn sums(&self) -> impl Iterator<Item = (u32, f64)> + '_ {
        self.entries.iter().map(|(community, sum, _)| (*community, *sum))
    }

    #[inline]
    fn first_place(&self, community: u32) -> usize {
        let spread = u64::from(community).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (spread >> 32) as usize & (self.places.len() - 1)
    }
}
