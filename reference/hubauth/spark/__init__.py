"""The replay of hubauth.trace over a cluster, and the checks that span hubs, as Spark jobs."""
