//! The tests of this crate, in one program: a file for each subject.

#![cfg(test)]
#![allow(clippy::arithmetic_side_effects, clippy::as_conversions, reason = "a test fails by panicking")]

mod accept;
mod contexts;
mod corpus;
mod documents;
mod keys;
mod languages;
mod mutants;
mod objects;
mod parsed_keys;
mod promises;
mod properties;
mod readers;
mod recover;
mod reject;
mod rules;
mod schema;
mod states;
mod text_forms;
