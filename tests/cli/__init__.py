"""The command line, in the test process or on a real API server with Joulie's own processes."""
