"""The scheduler extender: answers kube-scheduler from arrays that watches keep up to date (SPEC 6).

May import: `cluster`, `control`, `settings`, `logs`, `lifetime`, `serving`. A request costs no API call, no lock and no
log line. What it does not know it does not decide: unknown nodes pass and score neutral.
"""
