"""What several commands show: plan, scores, a pod's placement and the overview, as text and as documents.

`candidates` reads cluster and pod through `context`; the rest only formats what it is given.
"""
