"""Programs for those who work on Joulie; none of them is part of the package."""
