//! `profile()`: the measurements of each operator, as a table of text.

use mangrove_flow::{HelperStats, OperatorStats};

/// The table: one line an operator, with operators in scopes indented.
pub(crate) fn table(
    descriptions: &[(usize, String)],
    stats: &[OperatorStats],
    (groups, groups_peak, cancelled): (u64, u64, u64),
    set_apart: u64,
    helpers: &HelperStats,
    total_nanos: u64,
    memory_peak_bytes: u64,
) -> String {
    let mut text = format!("{:<52} {:>10} {:>12} {:>12} {:>10}\n", "operator", "messages", "rows in", "rows out", "ms");
    for ((depth, description), stats) in descriptions.iter().zip(stats) {
        let name = format!("{}{description}", "  ".repeat(*depth));
        text.push_str(&format!(
            "{name:<52} {:>10} {:>12} {:>12} {:>10.3}\n",
            stats.messages,
            stats.rows_in,
            stats.rows_out,
            stats.nanos as f64 / 1e6
        ));
    }
    text.push_str(&format!(
        "scope groups made {groups}, at most {groups_peak} at a time; instances cancelled early {cancelled}; \
         heavy instances set apart {set_apart}; \
         memory held by operators at most {memory_peak_bytes} bytes; {:.3} ms in all; cores used on average {:.2}\n",
        total_nanos as f64 / 1e6,
        cores_used(stats, total_nanos)
    ));
    if helpers.parcels > 0 {
        // Times of operators are those of all threads together.
        text.push_str(&format!(
            "other threads took over {} parcels of messages and worked {:.3} ms\n",
            helpers.parcels,
            helpers.nanos as f64 / 1e6
        ));
    }
    text
}

/// The time that all threads spent in operators, divided by the time that has passed. The time that a thread waits for
/// helpers or reads is not in it.
fn cores_used(stats: &[OperatorStats], total_nanos: u64) -> f64 {
    let worked: u64 = stats.iter().map(|stats| stats.nanos).sum();
    worked as f64 / total_nanos.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_the_work_of_all_threads_by_the_time_that_has_passed() {
        let worked = |nanos| OperatorStats { nanos, ..OperatorStats::default() };
        assert_eq!(cores_used(&[worked(1_000), worked(500)], 1_000), 1.5);
        assert_eq!(cores_used(&[worked(250)], 1_000), 0.25);
        assert_eq!(cores_used(&[], 0), 0.0);
    }
}
