"""What is kept of the experiments, and the page that is written from it."""
