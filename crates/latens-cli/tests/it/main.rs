//! The program as its users see it.

mod data_sets;
mod documents;
mod fitting;
mod gallery;
mod instruction_sets;
mod pages;
mod program;
mod readme;
mod report;
mod reproduce;
mod rivals;
mod solvers;
mod stories;
mod stream;
mod using;
mod workers;
