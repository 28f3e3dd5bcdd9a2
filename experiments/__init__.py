"""Ready experiments of the lab, what came out of them as numbers, and the page that says it in words."""
