//! Regular languages over code points, with intersection and complement.
