"""`joulie doctor`: `survey` reads everything once, the rules derive findings, `report` prints them. Never writes."""
