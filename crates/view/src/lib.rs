#![doc = include_str!("../README.md")]

mod page;
mod sentence;

pub use page::{Documents, Page};
pub use sentence::{Catalogue, CatalogueError, LANGUAGES, Message, Sentence};
