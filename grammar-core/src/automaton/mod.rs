//! The interface between a grammar's machine and the runtime.
