"""What tests of several packages share: clusters, real programs, and the command line inside the test's process."""
