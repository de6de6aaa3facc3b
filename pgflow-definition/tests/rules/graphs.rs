//! Order and cycles of random graphs.

use pgflow_definition::graph::{cycles, topological_order};
use proptest::prelude::*;

use crate::support::{graph, ordered_graph};

#[test]
fn the_first_declared_step_that_can_go_goes_first() {
    let dependencies = [vec![2], vec![], vec![3], vec![]];
    assert_eq!(topological_order(&dependencies), Some(vec![1, 3, 2, 0]));
}

#[test]
fn each_cycle_has_edges_of_its_own() {
    // 0 -> 1 -> 0 and 0 -> 2 -> 0.
    assert_eq!(cycles(&[vec![1, 2], vec![0], vec![0]]), [[0, 1], [0, 2]]);
    // 0 -> 1 -> 2 -> 0, and beside it 1 -> 3 -> 1; nothing else is on a cycle.
    let dependencies = [vec![1], vec![2, 3], vec![0], vec![1], vec![0], vec![]];
    assert_eq!(cycles(&dependencies), [vec![1, 3], vec![0, 1, 2]]);
    // The edge 0 -> 3 closes two cycles, and without it there is none.
    let diamond = [vec![3], vec![0], vec![0], vec![1, 2]];
    assert_eq!(cycles(&diamond), [[0, 3, 1]]);
}

#[test]
fn a_longer_way_round_is_taken_last() {
    // 0 -> 1 -> 2 -> 0; each of the three is also on a cycle of four of its own, listed last.
    let mut dependencies = vec![vec![1, 3], vec![2, 6], vec![0, 9]];
    for step in 0..3 {
        let first = 3 + 3 * step;
        dependencies.extend([vec![first + 1], vec![first + 2], vec![step]]);
    }
    let around = |step: usize| vec![step, 3 + 3 * step, 4 + 3 * step, 5 + 3 * step];
    assert_eq!(
        cycles(&dependencies),
        [vec![0, 1, 2], around(0), around(1), around(2)]
    );
}

#[test]
fn a_step_that_depends_on_itself_is_a_cycle_of_one() {
    assert_eq!(cycles(&[vec![], vec![1]]), [[1]]);
    assert_eq!(topological_order(&[vec![], vec![1]]), None);
}

#[test]
fn long_chains_need_no_stack() {
    let chain: Vec<Vec<usize>> = (0..20_000)
        .map(|step| if step == 0 { vec![] } else { vec![step - 1] })
        .collect();
    assert_eq!(topological_order(&chain), Some((0..20_000).collect()));
    let mut ring = chain;
    ring.truncate(500);
    ring[0] = vec![499];
    assert_eq!(cycles(&ring)[0].len(), 500);
}

/// The order by its definition.
fn plain_order(dependencies: &[Vec<usize>]) -> Option<Vec<usize>> {
    let mut order = Vec::new();
    while order.len() < dependencies.len() {
        let next = (0..dependencies.len()).find(|step| {
            !order.contains(step) && dependencies[*step].iter().all(|d| order.contains(d))
        })?;
        order.push(next);
    }
    Some(order)
}

/// Lengths of the shortest ways over one edge or more.
fn distances(dependencies: &[Vec<usize>]) -> Vec<Vec<Option<usize>>> {
    let steps = 0..dependencies.len();
    let mut ways: Vec<Vec<Option<usize>>> = steps
        .clone()
        .map(|from| {
            steps
                .clone()
                .map(|to| dependencies[from].contains(&to).then_some(1))
                .collect()
        })
        .collect();
    for via in steps.clone() {
        for from in steps.clone() {
            for to in steps.clone() {
                if let (Some(there), Some(on)) = (ways[from][via], ways[via][to]) {
                    let way = there + on;
                    ways[from][to] = Some(ways[from][to].map_or(way, |known| known.min(way)));
                }
            }
        }
    }
    ways
}

proptest! {
    #[test]
    fn the_order_is_the_stable_one(dependencies in graph()) {
        prop_assert_eq!(topological_order(&dependencies), plain_order(&dependencies));
    }

    #[test]
    fn what_is_in_order_stays(dependencies in ordered_graph(12)) {
        let steps = (0..dependencies.len()).collect();
        prop_assert_eq!(topological_order(&dependencies), Some(steps));
    }

    #[test]
    fn there_is_an_order_or_a_cycle(dependencies in graph()) {
        let order = topological_order(&dependencies);
        prop_assert_eq!(order.is_none(), !cycles(&dependencies).is_empty());
    }

    #[test]
    fn cycles_are_real_and_share_no_edge(dependencies in graph()) {
        let mut rest = dependencies.clone();
        for cycle in cycles(&dependencies) {
            prop_assert_eq!(cycle.iter().min(), cycle.first());
            for (&step, next) in cycle.iter().zip(cycle.iter().cycle().skip(1)) {
                prop_assert!(rest[step].contains(next), "{} -> {} is no edge, or one of two cycles", step, next);
                rest[step].retain(|dependency| dependency != next);
            }
        }
        // Whatever is left over has an order.
        prop_assert!(topological_order(&rest).is_some());
    }

    #[test]
    fn the_first_cycle_of_a_group_is_its_shortest(dependencies in graph()) {
        let ways = distances(&dependencies);
        let same_group = |a: usize, b: usize| ways[a][b].is_some() && ways[b][a].is_some();
        let steps = 0..dependencies.len();
        let found = cycles(&dependencies);
        for step in steps.clone().filter(|&step| ways[step][step].is_some()) {
            let first = found.iter().find(|cycle| same_group(cycle[0], step));
            let group = steps.clone().filter(|&other| same_group(step, other));
            let shortest = group.filter_map(|other| ways[other][other]).min();
            prop_assert_eq!(first.map(Vec::len), shortest);
        }
    }
}
