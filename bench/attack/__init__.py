"""Every port of ours under attack: who attacks, who watches, and what has to hold."""
