//! Neuron.
