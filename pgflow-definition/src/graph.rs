//! The step graph: order and cycles.
//!
//! Graphs are adjacency lists: `dependencies[i]` lists the indexes of the steps that step `i`
//! depends on.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// The stable topological order: repeatedly the first declared step whose dependencies have all
/// been taken. A list that is in topological order already stays as it is. `None` when there is a
/// cycle.
///
/// # Panics
///
/// When an index is out of range.
pub fn topological_order(dependencies: &[Vec<usize>]) -> Option<Vec<usize>> {
    let dependents = reversed(dependencies);
    let mut waiting: Vec<usize> = dependencies.iter().map(Vec::len).collect();
    let mut ready: BinaryHeap<Reverse<usize>> = waiting
        .iter()
        .enumerate()
        .filter(|&(_, &count)| count == 0)
        .map(|(step, _)| Reverse(step))
        .collect();

    let mut order = Vec::with_capacity(dependencies.len());
    while let Some(Reverse(step)) = ready.pop() {
        order.push(step);
        for &dependent in &dependents[step] {
            waiting[dependent] -= 1;
            if waiting[dependent] == 0 {
                ready.push(Reverse(dependent));
            }
        }
    }
    (order.len() == dependencies.len()).then_some(order)
}

/// Cycles of which no two share an edge, so each needs a change of at least one of its edges.
/// Within a group of steps that wait for each other the shortest one comes first.
///
/// Each step of a cycle depends on the next one, and the last one on the first; the first is the
/// one declared first. A step that depends on itself is a cycle of one.
///
/// # Panics
///
/// When an index is out of range.
pub fn cycles(dependencies: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut edges = dependencies.to_vec();
    let mut found = Vec::new();
    for start in 0..edges.len() {
        while let Some(cycle) = shortest_cycle_beside(&edges, start) {
            for (&step, next) in cycle.iter().zip(cycle.iter().cycle().skip(1)) {
                edges[step].retain(|dependency| dependency != next);
            }
            found.push(cycle);
        }
    }
    found
}

/// A shortest cycle among the steps that wait for a step and that it waits for.
fn shortest_cycle_beside(edges: &[Vec<usize>], start: usize) -> Option<Vec<usize>> {
    let awaited = reachable(edges, start);
    let waiting = reachable(&reversed(edges), start);
    (0..edges.len())
        .filter(|&step| awaited[step] && waiting[step])
        .filter_map(|step| shortest_cycle_through(edges, step))
        .min_by_key(Vec::len)
}

fn reversed(edges: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut reversed = vec![Vec::new(); edges.len()];
    for (from, targets) in edges.iter().enumerate() {
        for &to in targets {
            reversed[to].push(from);
        }
    }
    reversed
}

/// Returns the nodes that can be reached from `start` over one edge or more; `start` itself only
/// counts as reached through a cycle.
fn reachable(edges: &[Vec<usize>], start: usize) -> Vec<bool> {
    let mut reached = vec![false; edges.len()];
    let mut open = vec![start];
    while let Some(step) = open.pop() {
        for &next in &edges[step] {
            if !std::mem::replace(&mut reached[next], true) {
                open.push(next);
            }
        }
    }
    reached
}

fn shortest_cycle_through(edges: &[Vec<usize>], start: usize) -> Option<Vec<usize>> {
    let mut came_from = vec![None; edges.len()];
    let mut open = VecDeque::from([start]);
    while let Some(step) = open.pop_front() {
        for &next in &edges[step] {
            if next == start {
                return Some(path_to(step, &came_from));
            }
            if came_from[next].is_none() {
                came_from[next] = Some(step);
                open.push_back(next);
            }
        }
    }
    None
}

/// The way to `end` from where the search started, which came from nowhere.
fn path_to(end: usize, came_from: &[Option<usize>]) -> Vec<usize> {
    let mut path: Vec<usize> = std::iter::successors(Some(end), |&step| came_from[step]).collect();
    path.reverse();
    path
}
