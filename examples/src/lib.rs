//! Runnable examples of Sendoff live beside this file.
