"""The scheduler extender: answers kube-scheduler from arrays that watches keep up to date.

May import: `cluster`, `control`, `settings`, `logs`, `lifetime`, `serving`. A request costs no API call, no lock and no
log line. Unknown nodes pass the filter and get the neutral score.
"""
