//! Reviews of small repositories that the tests make themselves, with the real `git`.

mod fixture;
mod input;
mod numbers;
mod plans;
