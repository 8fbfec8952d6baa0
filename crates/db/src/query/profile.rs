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
         memory held by operators at most {memory_peak_bytes} bytes; {:.3} ms in all\n",
        total_nanos as f64 / 1e6
    ));
    if helpers.parcels > 0 {
        // Times of operators are those of all threads together.
        text.push_str(&format!(
            "other threads took over {} parcels of messages and worked {:.3} ms; threads at work on average {:.2}\n",
            helpers.parcels,
            helpers.nanos as f64 / 1e6,
            (total_nanos + helpers.nanos) as f64 / total_nanos.max(1) as f64
        ));
    }
    text
}
