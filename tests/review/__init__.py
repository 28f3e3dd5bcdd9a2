"""What a review of the command line on files found, kept as tests."""
