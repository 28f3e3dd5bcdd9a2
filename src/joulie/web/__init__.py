"""The dashboard: one page that shows what a cluster draws, what Joulie made of it, and why.

May import: everything below the shells, above all `overview`; no other shell. Reads only: it holds no connection to the
cluster and knows no verb but GET. Its host process (operator or demo) hands in how to read a snapshot, and serves its
routes.
"""
