//! Interleavings of the concurrent code of the store, tried out by shuttle: `cargo test -p mangrove-store --features
//! model --test model`. `MANGROVE_CASES` sets the number of interleavings of each scenario.

mod scenarios;

fn check(scenario: fn()) {
    let cases = mangrove_testdata::case_count(300);
    shuttle::check_random(scenario, cases);
    shuttle::check_pct(scenario, cases, 3);
}

#[test]
fn a_pinned_reader_keeps_what_it_found() {
    check(scenarios::a_pinned_reader_keeps_what_it_found);
}

#[test]
fn a_list_is_replaced_while_it_changes() {
    check(scenarios::a_list_is_replaced_while_it_changes);
}

#[test]
fn edges_of_run_and_tail_end_while_their_list_is_packed() {
    check(scenarios::edges_of_run_and_tail_end_while_their_list_is_packed);
}

#[test]
fn lists_of_a_load_are_walked_while_they_change() {
    check(scenarios::lists_of_a_load_are_walked_while_they_change);
}

#[test]
fn lists_are_replaced_while_their_vertex_is_deleted() {
    check(scenarios::lists_are_replaced_while_their_vertex_is_deleted);
}

#[test]
fn version_words_go_while_an_element_is_deleted() {
    check(scenarios::version_words_go_while_an_element_is_deleted);
}

#[test]
fn a_chain_is_cut_while_the_cell_is_written() {
    check(scenarios::a_chain_is_cut_while_the_cell_is_written);
}

#[test]
fn an_index_is_built_while_a_record_is_used_again() {
    check(scenarios::an_index_is_built_while_a_record_is_used_again);
}

#[test]
fn a_column_becomes_dense_while_a_cell_is_written() {
    check(scenarios::a_column_becomes_dense_while_a_cell_is_written);
}

#[test]
fn a_table_becomes_dense_while_its_lists_change() {
    check(scenarios::a_table_becomes_dense_while_its_lists_change);
}

#[test]
fn a_table_is_emptied_while_a_list_begins() {
    check(scenarios::a_table_is_emptied_while_a_list_begins);
}

#[test]
fn a_page_is_frozen_while_a_free_slot_is_used() {
    check(scenarios::a_page_is_frozen_while_a_free_slot_is_used);
}

#[test]
fn a_frozen_page_is_opened_while_it_is_frozen_again() {
    check(scenarios::a_frozen_page_is_opened_while_it_is_frozen_again);
}

#[test]
fn a_log_of_changes_begins_while_edges_are_written() {
    check(scenarios::a_log_of_changes_begins_while_edges_are_written);
}

#[test]
fn facts_come_before_the_edges_that_they_are_about() {
    check(scenarios::facts_come_before_the_edges_that_they_are_about);
}
