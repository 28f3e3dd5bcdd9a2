"""Commands for setting Joulie up."""
