//! The tests of this crate, in one program: a file for each subject.

#![cfg(test)]
#![allow(clippy::arithmetic_side_effects, reason = "a test fails by panicking")]

mod again;
mod api;
mod beside;
mod captures;
mod dead;
mod decide;
mod driver;
mod faults;
mod files;
mod flow;
mod outside;
mod pages;
mod pins;
mod requests;
mod restore;
mod store;
mod support;
mod traces;
mod tracking;
mod unsent;
mod world;
