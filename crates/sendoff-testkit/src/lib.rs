//! Conformance suites for Sendoff stores and sinks, scripted faults, a simulator
